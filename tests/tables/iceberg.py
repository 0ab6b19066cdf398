"""Reads the Iceberg tables of a lake with DuckDB itself: python iceberg.py LAKE MOVED

Each table must have the rows of its Parquet files, also in MOVED, a copy of the lake that this
program makes. The extensions of DuckDB are packages of PyPI, so nothing is downloaded while it runs.
They exist for one release of DuckDB, so tests/tables/iceberg_requirements.txt has an environment of
its own.
"""

import importlib.util
import shutil
import sys
from pathlib import Path

import duckdb


def connect():
    """Returns a connection with the installed extensions."""
    packages = importlib.util.find_spec("duckdb_ext").submodule_search_locations
    folders = [Path(package) / "extensions" for package in packages]
    folder = next(folder for folder in folders if folder.is_dir())
    options = {"extension_directory": str(folder), "autoinstall_known_extensions": False}
    connection = duckdb.connect(config=options)
    for extension in ("avro", "iceberg"):
        connection.execute(f"LOAD {extension}")
    return connection


def check(connection, view, options=""):
    """Compares all columns of a table with those of its files. Returns the number of rows."""
    table = f"SELECT * FROM iceberg_scan('{view}'{options})"
    files = f"SELECT * FROM '{view}/data/*.parquet'"
    counts = [connection.sql(f"SELECT count(*) FROM ({rows})").fetchone()[0] for rows in (table, files)]
    assert counts[0] == counts[1], f"{view}: {counts}"
    for here, there in ((table, files), (files, table)):
        absent = connection.sql(f"{here} EXCEPT ALL {there}").fetchall()
        assert not absent, f"{view}: {absent[:3]}"
    return counts[0]


def check_snapshots(connection, view, rows):
    """Reads a table as of each of its snapshots: the last one has all rows, and none has more."""
    snapshots = connection.sql(f"SELECT snapshot_id FROM iceberg_snapshots('{view}') ORDER BY ALL").fetchall()
    counts = [
        connection.sql(f"SELECT count(*) FROM iceberg_scan('{view}', snapshot_from_id = {snapshot})").fetchone()[0]
        for (snapshot,) in snapshots
    ]
    assert counts and counts == sorted(counts) and counts[-1] == rows, f"{view}: {counts}"


def main():
    lake, moved = map(Path, sys.argv[1:3])
    views = sorted(hint.parents[1].name for hint in lake.glob("*/metadata/version-hint.text"))
    assert len(views) >= 10, views
    shutil.rmtree(moved, ignore_errors=True)
    shutil.copytree(lake, moved)
    connection = connect()
    rows = 0
    for view in views:
        found = check(connection, lake / view)
        check_snapshots(connection, lake / view, found)
        assert check(connection, moved / view, ", allow_moved_paths = true") == found, view
        rows += found
    assert rows > 100, rows
    print(f"DuckDB {duckdb.__version__} read {rows} rows of {len(views)} Iceberg tables")


if __name__ == "__main__":
    main()
