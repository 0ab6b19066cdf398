"""Runs the scripts of docs/analytics.md on a lake, and reads its tables as other programs do.

    cargo xtask soak --only lake

The lake is written by three syncs: of a part of the sample, of all of it, and without one EHR.
"""

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import boto3
import duckdb
from moto.server import ThreadedMotoServer
from pyiceberg.table import StaticTable

# The server of S3 logs requests as warnings, and pyiceberg each column of repeating texts.
logging.disable(logging.WARNING)

ROOT = Path(__file__).parents[2]
SCRIPTS = {
    "pandas_weights.py": "sample_vital_signs_v1_body_weight_any_event",
    "polars_pressures.py": "sample_vital_signs_v1_blood_pressure_any_event",
    "duckdb_problems.py": "sample_problem_list_v1_problem_diagnosis",
    "iceberg_pulse.py": "sample_vital_signs_v1_pulse_heart_beat_any_event",
    "analytes.R": "laboratory_test_result_any_event_laboratory_analyte_result_1c4b3464",
}


class Lake:
    """A lake, with the data that it follows."""

    def __init__(self, program, sample, folder):
        self.program, self.folder = program, folder
        self.data, self.lake = folder / "data", folder / "lake"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(sample / "templates", self.data / "templates")
        self.lines = (sample / "compositions.ndjson").read_text().splitlines(keepends=True)
        for template in (self.data / "templates").iterdir():
            self.aqlite("lake", "views", template, "-o", folder / "views")

    def aqlite(self, *arguments, variables=None):
        """Runs the program, and returns its output."""
        arguments = [self.program, *map(str, arguments)]
        environment = {**os.environ, **(variables or {})}
        ran = subprocess.run(arguments, check=True, capture_output=True, text=True, env=environment)
        return ran.stdout

    def sync(self, lines):
        """Writes lines as the data, and synchronizes the lake."""
        (self.data / "compositions.ndjson").write_text("".join(lines))
        self.aqlite("lake", "sync", "-d", self.data, "--to", self.lake)

    def expected(self, view):
        """Returns the number of rows that the query of a view has."""
        rows = self.aqlite(
            "query", "-d", self.data, "-f", self.folder / "views" / f"{view}.aql", "--format", "ndjson"
        )
        return len(rows.splitlines())

    def table(self, view):
        """Returns the Iceberg table of a view; nothing if it has no row yet."""
        metadata = self.lake / view / "metadata"
        hint = metadata / "version-hint.text"
        if not hint.is_file():
            return None
        return StaticTable.from_metadata(str(metadata / f"v{hint.read_text()}.metadata.json"))


def run_scripts(lake):
    """Runs each script, and checks its number of rows and its plot."""
    for script, view in SCRIPTS.items():
        program = sys.executable if script.endswith(".py") else shutil.which("Rscript")
        if program is None:
            print(f"skipped: {script} needs R")
            continue
        plot = lake.folder / f"{script}.png"
        command = [program, str(ROOT / "examples/lake" / script), str(lake.lake), str(plot)]
        ran = subprocess.run(command, capture_output=True, text=True)
        assert ran.returncode == 0, f"{script}: {ran.stderr}"
        expected = lake.expected(view)
        assert expected > 0 and ran.stdout == f"{expected} rows\n", f"{script}: {ran.stdout}"
        assert plot.read_bytes().startswith(b"\x89PNG"), script


def check_tables(lake, snapshots):
    """Compares each Iceberg table with the Parquet files of its view. Returns their number."""
    found = 0
    for view in sorted(path.stem for path in (lake.folder / "views").iterdir()):
        table = lake.table(view)
        if table is None:
            assert lake.expected(view) == 0, view
            continue
        rows = table.scan().to_arrow()
        files = f"'{lake.lake}/{view}/data/*.parquet'"
        sql = f"SELECT ehr_id, object_id, sync, deleted FROM {files} ORDER BY ALL"
        expected = sorted(duckdb.sql(sql).fetchall())
        columns = [rows[name].to_pylist() for name in ("ehr_id", "object_id", "sync", "deleted")]
        assert sorted(zip(*columns)) == expected, view
        assert len(table.snapshots()) <= snapshots, view
        found += 1
    return found


def read_by_duckdb(lake, python):
    """Reads the Iceberg tables with DuckDB itself, in the environment of its extensions."""
    program = [python, ROOT / "tests/tables/iceberg.py", lake.lake, lake.folder / "moved"]
    subprocess.run(program, check=True)


def check_bucket(lake):
    """Writes the lake to a bucket of a local server of S3, and reads one of its tables."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    client = boto3.client(
        "s3",
        endpoint_url=url,
        region_name=keys["AWS_REGION"],
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    client.create_bucket(Bucket="lake")
    variables = {**keys, "AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true"}
    view = SCRIPTS["pandas_weights.py"]
    options = ["-d", lake.data, "--to", "s3://lake/here", "--view", lake.folder / f"views/{view}.aql"]
    first, second = (lake.aqlite("lake", "sync", *options, variables=variables) for _ in range(2))
    assert first.startswith(f"{view}: {lake.expected(view)} rows"), first
    assert second == f"{view}: no changes\n", second
    properties = {
        "s3.endpoint": url,
        "s3.access-key-id": "test",
        "s3.secret-access-key": "test",
        "s3.region": keys["AWS_REGION"],
    }
    metadata = f"s3://lake/here/{view}/metadata/v1.metadata.json"
    table = StaticTable.from_metadata(metadata, properties=properties)
    assert len(table.scan().to_arrow()) == lake.expected(view)
    server.stop()


def main():
    program, sample, folder = map(Path, sys.argv[1:4])
    # Another Python, with an older DuckDB. Its path is not resolved: a link to it names its packages.
    with_extensions = sys.argv[4]
    lake = Lake(program.resolve(), sample, folder.resolve())
    lake.sync(lake.lines[: len(lake.lines) * 2 // 3])
    lake.sync(lake.lines)
    assert check_tables(lake, snapshots=2) >= 10
    weights = lake.table(SCRIPTS["pandas_weights.py"])
    first, second = weights.snapshots()
    counts = [len(weights.scan(snapshot_id=one.snapshot_id).to_arrow()) for one in (first, second)]
    assert counts[0] < counts[1], counts
    read_by_duckdb(lake, with_extensions)
    run_scripts(lake)

    gone = json.loads(lake.lines[0])["ehr_id"]
    lake.sync([line for line in lake.lines if gone not in line])
    assert check_tables(lake, snapshots=2) >= 10
    rewritten = lake.table(SCRIPTS["polars_pressures.py"])
    assert len(rewritten.snapshots()) == 1, "snapshots expire after a removal"
    read_by_duckdb(lake, with_extensions)
    holding = [path for path in lake.lake.rglob("*") if path.is_file() and gone.encode() in path.read_bytes()]
    assert not holding, holding
    run_scripts(lake)
    check_bucket(lake)
    print("the lake was read by pandas, Polars, DuckDB and pyiceberg")


if __name__ == "__main__":
    main()
