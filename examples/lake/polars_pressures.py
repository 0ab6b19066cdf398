"""Blood pressures by year, by Polars: python polars_pressures.py LAKE PLOT.png"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as pyplot
import polars
from polars import col

lake, plot = sys.argv[1:3]
pressures = polars.scan_parquet(
    f"{lake}/sample_vital_signs_v1_blood_pressure_any_event/data/*.parquet"
)

# The present rows: those of the last sync of each composition.
present = pressures.filter(
    (col("sync") == col("sync").max().over("object_id")) & ~col("deleted")
).collect()
print(present.height, "rows")

by_year = (
    present.with_columns(
        year=col("time").str.slice(0, 4).cast(polars.Int32),
        systolic=col("systolic").struct.field("magnitude"),
        diastolic=col("diastolic").struct.field("magnitude"),
    )
    .group_by("year")
    .agg(col("systolic").median(), col("diastolic").median())
    .sort("year")
)
figure, axes = pyplot.subplots()
for name in ("systolic", "diastolic"):
    axes.plot(by_year["year"], by_year[name], marker="o", label=name)
axes.set(title="Median blood pressure", xlabel="year", ylabel="mm[Hg]")
axes.legend()
figure.savefig(plot)
