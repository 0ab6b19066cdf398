"""Compares tables of Arrow and Parquet, as other programs read them, with the rows of JSON.

The suites of AQL write the tables:

    AQLITE_TABLES_OUT=target/tables/cases cargo xtask conformance aql
    python3 -m venv target/tables/venv
    target/tables/venv/bin/pip install --requirement tests/tables/requirements.txt
    target/tables/venv/bin/python tests/tables/check.py target/tables/cases

Each case has three files: `.json` (a RESULT_SET), `.arrows` and `.parquet`. The readers are pyarrow,
Polars and DuckDB. Numbers must have the same decimal value, points in time must be the same, and
objects must have the same members.
"""

import json
import sys
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import duckdb
import polars
import pyarrow
import pyarrow.ipc
import pyarrow.parquet


def decoded(text):
    """Returns JSON with every number as a decimal number."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def number(value):
    """Returns the decimal number that a program prints for a number."""
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def metadata(field, key):
    """Returns a value of the metadata of a field of the schema."""
    return (field.metadata or {}).get(key.encode(), b"").decode()


def coded(value, other):
    """Returns the CODE_PHRASE of a struct, or nothing if its members are in `other`."""
    phrase = {"_type": "CODE_PHRASE"}
    if value.get("terminology") is not None:
        phrase["terminology_id"] = {"_type": "TERMINOLOGY_ID", "value": value["terminology"]}
    if value.get("code") is not None:
        phrase["code_string"] = value["code"]
    return {name: part for name, part in phrase.items() if name not in other}


def struct(value, field):
    """Returns the object that a struct was written from."""
    kind = metadata(field, "aqlite.class")
    other = decoded(value["other"]) if value.get("other") is not None else {}
    made = {"_type": kind}
    if kind == "DV_QUANTITY":
        text = metadata(field.type.field("magnitude"), "aqlite.content") == "number"
        made["magnitude"] = Decimal(value["magnitude"]) if text else number(value["magnitude"])
        for name in ("units", "precision"):
            if value.get(name) is not None:
                made[name] = value[name] if name == "units" else number(value[name])
    elif kind == "CODE_PHRASE":
        made = coded(value, other)
    else:
        made["value"] = value["value"]
        if value.get("code") is not None and "defining_code" not in other:
            made["defining_code"] = coded(value, {})
    return {**made, **other}


def cell(value, field):
    """Returns a value of a table as the cell of JSON that it was written from."""
    content = metadata(field, "aqlite.content")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, dict):
        return struct(value, field)
    if isinstance(value, str):
        return decoded(value) if content == "json" else Decimal(value) if content == "number" else value
    return value if isinstance(value, date) else number(value)


def same(sent, read):
    """Returns whether a cell of JSON and a cell of a table have one value."""
    if isinstance(read, datetime):
        zoned = read if read.tzinfo else read.replace(tzinfo=timezone.utc)
        return isinstance(sent, str) and datetime.fromisoformat(sent) == zoned
    if isinstance(read, date):
        return sent == read.isoformat()
    return sent == read


def readers(stream, file):
    """Yields the name of each reader, and the rows that it returns, as lists of Python values."""
    arrow = pyarrow.ipc.open_stream(stream).read_all()
    parquet = pyarrow.parquet.read_table(file)
    for name, table in (("pyarrow arrow", arrow), ("pyarrow parquet", parquet)):
        columns = [column.to_pylist() for column in table.columns]
        yield name, list(map(list, zip(*columns)))
    for name, frame in (
        ("polars arrow", polars.read_ipc_stream(stream)),
        ("polars parquet", polars.read_parquet(file)),
    ):
        yield name, list(map(list, frame.rows()))
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, rows in (
        ("duckdb arrow", connection.from_arrow(arrow)),
        ("duckdb parquet", connection.read_parquet(str(file))),
    ):
        yield name, list(map(list, rows.fetchall()))


def check(path):
    """Returns the differences of the tables of one case."""
    result = decoded(path.read_text())
    stream, file = path.with_suffix(".arrows").read_bytes(), path.with_suffix(".parquet")
    schema = pyarrow.ipc.open_stream(stream).schema
    aql = schema.metadata[b"aqlite.aql"].decode()
    problems = [] if aql == result["q"] else [f"{path.stem}: the query is {aql}"]
    for name, rows in readers(stream, file):
        found = [[cell(value, field) for value, field in zip(row, schema)] for row in rows]
        expected = result["rows"]
        if len(found) != len(expected):
            problems.append(f"{path.stem}: {name}: {len(found)} rows instead of {len(expected)}")
            continue
        for number_of_row, (sent, read) in enumerate(zip(expected, found)):
            if len(sent) != len(read) or not all(map(same, sent, read)):
                problems.append(f"{path.stem}: {name}: row {number_of_row} is {read} instead of {sent}")
                break
    return problems


def main():
    paths = sorted(Path(sys.argv[1]).glob("*.json"))
    problems = [problem for path in paths for problem in check(path)]
    print(*problems[:40], sep="\n")
    print(f"{len(paths)} cases, {len(problems)} problems")
    sys.exit(1 if problems or not paths else 0)


if __name__ == "__main__":
    main()
