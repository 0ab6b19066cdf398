"""The most frequent problems, by SQL of DuckDB: python duckdb_problems.py LAKE PLOT.png"""

import sys

import duckdb
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as pyplot

lake, plot = sys.argv[1:3]
connection = duckdb.connect()
connection.execute(
    f"""
    CREATE VIEW problems AS
    SELECT * EXCLUDE (newest) FROM (
      -- The present rows: those of the last sync of each composition.
      SELECT *, max(sync) OVER (PARTITION BY object_id) AS newest
      FROM '{lake}/sample_problem_list_v1_problem_diagnosis/data/*.parquet'
    ) WHERE sync = newest AND NOT deleted
    """
)
print(connection.execute("SELECT count(*) FROM problems").fetchall()[0][0], "rows")

frequent = connection.execute(
    """
    SELECT coalesce(severity.value, 'unknown') AS severity, count(DISTINCT ehr_id) AS patients
    FROM problems GROUP BY ALL ORDER BY patients DESC, severity
    """
).fetchall()
figure, axes = pyplot.subplots()
axes.barh([severity for severity, _ in frequent], [patients for _, patients in frequent])
axes.set(title="Severity of problems", xlabel="patients")
figure.tight_layout()
figure.savefig(plot)
