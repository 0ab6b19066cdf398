"""The latest weight of each patient, by pandas: python pandas_weights.py LAKE PLOT.png"""

import sys

import matplotlib

matplotlib.use("Agg")
import pandas

lake, plot = sys.argv[1:3]
weights = pandas.read_parquet(f"{lake}/sample_vital_signs_v1_body_weight_any_event/data")

# The present rows: those of the last sync of each composition.
newest = weights.groupby("object_id")["sync"].transform("max")
weights = weights[(weights["sync"] == newest) & ~weights["deleted"]]
print(len(weights), "rows")

weights["kg"] = weights["weight"].map(lambda weight: weight["magnitude"], na_action="ignore")
last = weights.sort_values("time").groupby("ehr_id")["kg"].last()
axes = last.plot.hist(bins=12, title=f"Last weight of {len(last)} patients")
axes.set_xlabel("kg")
axes.figure.savefig(plot)
