"""Pulse rates by SQL over the Iceberg table, by pyiceberg: python iceberg_pulse.py LAKE PLOT.png"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as pyplot
from pyiceberg.table import StaticTable

lake, plot = sys.argv[1:3]
metadata = Path(lake) / "sample_vital_signs_v1_pulse_heart_beat_any_event" / "metadata"
version = (metadata / "version-hint.text").read_text()
table = StaticTable.from_metadata(str(metadata / f"v{version}.metadata.json"))

# A filter on the columns of the table is evaluated while its files are read.
connection = table.scan(row_filter="sync >= 1").to_duckdb("pulse")
rates = connection.execute(
    """
    SELECT rate.magnitude FROM (
      -- The present rows: those of the last sync of each composition.
      SELECT *, max(sync) OVER (PARTITION BY object_id) AS newest FROM pulse
    ) WHERE sync = newest AND NOT deleted
    """
).fetchall()
print(len(rates), "rows")

figure, axes = pyplot.subplots()
axes.hist([rate for (rate,) in rates if rate is not None], bins=20)
axes.set(title=f"Pulse rates, snapshot {table.current_snapshot().snapshot_id}", xlabel="/min")
figure.savefig(plot)
