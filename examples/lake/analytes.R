# Results of laboratory tests by R: Rscript analytes.R LAKE PLOT.png
# install.packages(c("arrow", "dplyr"))

library(arrow)
library(dplyr)

arguments <- commandArgs(trailingOnly = TRUE)
view <- "laboratory_test_result_any_event_laboratory_analyte_result_1c4b3464"
results <- open_dataset(file.path(arguments[1], view, "data")) |>
  select(object_id, sync, deleted, laboratory_analyte_result_name) |>
  collect() |>
  # The present rows: those of the last sync of each composition.
  group_by(object_id) |>
  filter(sync == max(sync), !deleted) |>
  ungroup()
cat(nrow(results), "rows\n")

png(arguments[2])
counts <- sort(table(results$laboratory_analyte_result_name), decreasing = TRUE)
barplot(head(counts, 10), las = 2, main = "Results of laboratory tests")
invisible(dev.off())
