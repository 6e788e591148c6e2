"""`query`, `tables` and `snapshots` after a backup, for people and as JSON."""

from __future__ import annotations

import csv
import io
import os
import re
import resource
import subprocess
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openpyxl import load_workbook

from cli.query import ask
from pipelines.errors import ConfigurationError, StorageError
from pipelines.records.tables.registry import TABLES
from pipelines.store.catalogue import open_catalogue
from pipelines.store.snapshots.snapshots import DataFolder
from tests.cli.command import BOOKFERRY, PATIENCE, environment, run
from tests.cli.conftest import BackedUp
from tests.store.snapshot_factory import STARTED_AT, make_snapshot_and_catalogue
from tests.store.test_durable import DAMAGE

UNUSUAL_VALUES = r"""
SELECT
    NULL AS nothing, DATE '2020-02-29' AS day, TIMESTAMP '2020-02-29 12:00:00' AS moment, 1.50::DECIMAL(9, 2) AS price,
    170141183460469231731687303715884105727 AS huge, [1, NULL, 3] AS list, {'a': {'b': [DATE '2020-01-01']}} AS nested,
    MAP {2: 'two'} AS map, 'a [red]b[/red] [/] \[c :book:' AS markup, 'x' || chr(27) || '[31m' || chr(10) || chr(0) AS control,
    'nan'::DOUBLE AS nan, 'infinity'::DOUBLE AS infinite, true AS yes, '\x00\xff'::BLOB AS bytes,
    INTERVAL 3 DAYS AS span, DATE '-infinity' AS long_ago, TIMESTAMP '290000-01-01' AS late, 1 AS a, 2 AS a, 3 AS a_2
"""


def _rows(installation: BackedUp, sql: str) -> list[dict[str, Any]]:
    outcome = installation.run("query", sql, "--json")
    assert outcome.status == 0, outcome.err
    rows: list[dict[str, Any]] = outcome.document["rows"]
    return rows


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "folder", "deleted"])
def test_a_damaged_file_is_named(tmp_path: Path, damage: str) -> None:
    """Once, before and after the views are made; the other tables answer, and a mistake in the query stays one."""
    data = DataFolder(tmp_path / "library-data")
    snapshot = make_snapshot_and_catalogue(data)
    spoil, words = DAMAGE[damage]
    spoil(snapshot.path / "publications.parquet")
    named = re.escape(f"{snapshot.path / 'publications.parquet'} {words}")
    with open_catalogue(data) as database:
        for sql in ("SELECT * FROM publications", "SELECT max(title) FROM publications_history"):
            with pytest.raises(
                StorageError, match=rf"^{named}.*`bookferry snapshots verify {snapshot.name}`"
            ) as caught:
                [*ask(database, sql, data)[1]]
            assert str(caught.value).count(str(snapshot.path)) == 1
        assert [*ask(database, "SELECT count(*) FROM publication_authors", data)[1]] == [[(3,)]]
        for sql in ("SELECT error('x') FROM publication_authors", "SELECT missing FROM publication_authors"):
            with pytest.raises(ConfigurationError):
                [*ask(database, sql, data)[1]]
    make_snapshot_and_catalogue(data, now=STARTED_AT + timedelta(days=1))  # the next night
    with open_catalogue(data) as database:
        assert [*ask(database, "SELECT count(*) FROM publications", data)[1]] == [[(3,)]]
        assert [*ask(database, "SELECT count(*) FROM publication_authors_history", data)[1]] == [[(6,)]]
        with pytest.raises(StorageError, match=named):
            [*ask(database, "SELECT count(*) FROM publications_history", data)[1]]


def test_a_table_that_was_not_read_is_named(library: BackedUp) -> None:
    """That a table has no rows says nothing where the snapshot does not have it."""
    outcome = library.run("query", "SELECT count(*) AS copies FROM hard_copies", "--json")
    assert outcome.document["rows"] == [{"copies": 0}]
    [tenants] = outcome.document["not_read"].values()
    assert len(tenants) == 1
    assert outcome.err.startswith("! hard_copies was read in no complete snapshot of ")
    assert "not_read" not in library.run("query", "SELECT count(*) FROM publications", "--json").document


@pytest.mark.long
def test_any_value_has_a_form_in_json(library: BackedUp) -> None:
    """Two columns of the same name stay two. Values that JSON cannot express are text or null."""
    (row,) = _rows(library, UNUSUAL_VALUES)
    assert row["nothing"] is None
    assert (row["day"], row["moment"], row["price"]) == ("2020-02-29", "2020-02-29T12:00:00", "1.50")
    assert row["huge"] == 170141183460469231731687303715884105727
    assert (row["list"], row["nested"], row["map"]) == ([1, None, 3], {"a": {"b": ["2020-01-01"]}}, {"2": "two"})
    assert row["markup"] == r"a [red]b[/red] [/] \[c :book:"
    assert row["control"] == "x\x1b[31m\n\0"
    assert (row["nan"], row["infinite"], row["yes"]) == (None, None, True)
    assert (row["a"], row["a_2"], row["a_3"]) == (1, 3, 2)


def test_any_value_is_shown_as_it_is(library: BackedUp) -> None:
    """Markup in data is data, and a control character cannot reach the terminal."""
    outcome = library.run("query", UNUSUAL_VALUES)
    assert outcome.status == 0, outcome.err
    printed = dict(line.split(None, 1) for line in outcome.lines[1:-1] if len(line.split(None, 1)) == 2)
    assert printed["markup"].rstrip() == r"a [red]b[/red] [/] \[c :book:"
    assert printed["control"].rstrip() == r"x\x1b[31m\n\x00"
    assert "\x1b" not in outcome.out
    assert outcome.lines[-1] == "1 row"


def test_the_terminal_gets_a_hundred_rows_and_json_all(library: BackedUp) -> None:
    sql = "SELECT * FROM range(250) AS t(n)"
    assert library.run("query", sql).lines[-1] == "100 rows; there are more (--limit 0 shows all)"
    assert library.run("query", sql, "--limit", "7").lines[-1] == "7 rows; there are more (--limit 0 shows all)"
    assert library.run("query", sql, "--limit", "0").lines[-1] == "250 rows"
    assert len(_rows(library, sql)) == 250


def test_examples_are_listed_copied_and_run(library: BackedUp, tmp_path: Path) -> None:
    """Listed without a configuration, with the folder of their files, and asked by name."""
    listed = run("query", "--list-examples", "--json", folder=tmp_path).document["examples"]
    printed = run("query", "--list-examples", folder=tmp_path).out
    assert len(listed) >= 5
    assert all("?" in entry["question"] and entry["question"] in printed for entry in listed)
    name = "gaps_by_kind"
    (folder,) = re.findall(r"copy NAME\.sql from (\S+),", printed)
    file = Path(folder, f"{name}.sql")
    (example,) = (entry for entry in listed if entry["example"] == name)
    assert file.read_text(encoding="utf-8") == example["sql"]
    answer = library.run("query", "--example", name, "--json").document
    assert answer == library.run("query", "--file", file, "--json").document
    assert answer == library.run("query", "--file", "-", "--json", typed=example["sql"]).document
    assert answer["count"] == 3
    library.run("query", "--example", "gap_by_kind", "--json").assert_failed(2, f"did you mean '{name}'?", "Examples: ")


def test_csv_that_a_spreadsheet_shows_as_it_is(library: BackedUp) -> None:
    """I13: a text is never a formula, not even where a program separates by semicolons; numbers, dates and nothing stay what they are."""
    sql = r"""SELECT
    '=1+1' AS "=name", 'a;=b' AS semicolon, -5 AS number, DATE '2020-02-29' AS day, NULL AS nothing, true AS yes, [1, NULL] AS list,
    'x' || chr(0) || chr(27) AS control, 'one' || chr(10) || '"two", three' AS lines, '10.1000/a;2-b' AS doi"""
    outcome = library.run("query", sql, "--csv")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.startswith("\ufeff'=name,")
    (row,) = csv.reader(io.StringIO(outcome.out.partition("\n")[2]))
    texts = ["'=1+1", "a;'=b", "-5", "2020-02-29", "", "true", "[1,null]", "x␀␛", 'one "two", three', "10.1000/a;2-b"]
    assert row == texts
    library.run("query", sql, "--csv", "--json").assert_failed(2, "--csv")


@pytest.mark.parametrize("ending", ["CSV", "parquet", "xlsx"])
def test_a_result_as_a_file(library: BackedUp, tmp_path: Path, ending: str) -> None:
    """The file is complete or absent; two columns of the same name stay two, and a table of texts is as it is printed."""
    file = tmp_path / f"answer.{ending}"
    sql = "SELECT id, title, published_on, id FROM publications ORDER BY id"
    outcome = library.run("query", sql, "--to", file, "--json")
    total, names = library.sandbox.publications(), ["id", "title", "published_on", "id_2"]
    assert outcome.document == {"columns": names, "count": total, "path": str(file)}
    if ending == "CSV":
        assert file.read_bytes().decode() == library.run("query", sql, "--csv").out.replace("\n", "\r\n")
    elif ending == "parquet":
        assert pq.read_schema(file).types == [pa.int64(), pa.string(), pa.date32(), pa.int64()]
        assert pq.read_table(file, columns=["id"]).num_rows == total
    else:
        assert load_workbook(file).active.max_row == total + 1
    library.run("query", "SELECT error('at last')", "--to", f"{file}.{ending}").assert_failed(2, "at last")
    library.run("query", sql, "--to", file, "--csv").assert_failed(2, "--csv")
    library.run("query", sql, "--to", tmp_path / "x.ods").assert_failed(2, "ends in .csv, .parquet or .xlsx")
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_cells_of_a_workbook(library: BackedUp, tmp_path: Path) -> None:
    """Text stays text, also a number and a formula; dates are text, numbers are numbers."""
    file = tmp_path / "answer.xlsx"
    sql = (
        "SELECT '0306406152' AS isbn, '=1+1' AS formula, 1.50::DECIMAL(5, 2) AS price, sum(7) AS whole, DATE '1814-02-03' AS day, "
        "[1, NULL] AS list, NULL AS nothing, true AS yes, 1234567890123456::DECIMAL(18, 0) AS decimal"
    )
    assert library.run("query", sql, "--to", file).status == 0
    sheet = load_workbook(file).active
    cells = ("0306406152", "=1+1", 1.5, 7, "1814-02-03", "[1,null]", None, True, "1234567890123456")
    assert next(sheet.iter_rows(min_row=2, values_only=True)) == cells
    assert sheet["B2"].data_type in {"s", "inlineStr"}
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("A2", "A1:I2")


def test_an_error_after_many_rows_is_part_of_the_one_document(library: BackedUp) -> None:
    """The rows before the error are there. Document, stderr and status say that the result is incomplete; for CSV, the last two do."""
    # far more before the error than DuckDB buffers for its reader (10 MiB)
    sql = "SELECT if(i < 30000, repeat('x', 1000), error('at last')) AS text FROM range(40000) AS r(i)"
    outcome = library.run("query", sql, "--json")
    assert (outcome.status, outcome.err.count("error: ")) == (2, 1)
    assert outcome.document["count"] == len(outcome.document["rows"]) > 0
    assert "at last" in outcome.document["error"]
    assert outcome.document["exit_status"] == 2
    library_csv = library.run("query", sql, "--csv")
    assert (library_csv.status, library_csv.err.count("error: ")) == (2, 1)


@pytest.mark.long
@pytest.mark.parametrize("form", ["--json", "--to=all.parquet"])
def test_a_long_result_is_never_in_memory(library: BackedUp, form: str) -> None:
    """I11: a gigabyte of rows, in a process that may not have so much."""
    megabytes = 1024 * 1024

    def little_memory() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (700 * megabytes, 700 * megabytes))

    sql = (
        "SET threads = 1; SET memory_limit = '100MB'; SELECT repeat('x', 4000) || i AS text FROM range(250000) AS r(i)"
    )
    started = library.start("query", sql, form, stdout=subprocess.DEVNULL, preexec_fn=little_memory)
    _, messages = started.communicate(timeout=PATIENCE)
    assert started.returncode == 0, messages


@pytest.mark.parametrize(
    ("sql", "messages"),
    [
        ("SELEC 1", ["syntax error", "bookferry tables"]),
        ("SELECT * FROM publicatons", ['Did you mean "publications"', "bookferry tables"]),
        (" -- nothing", ["empty"]),
    ],
)
def test_an_error_in_sql_is_exit_2(library: BackedUp, sql: str, messages: list[str]) -> None:
    library.run("query", sql, "--json").assert_failed(2, *messages)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE mine (a INTEGER)",
        "DELETE FROM publications",
        "COPY snapshots FROM 'elsewhere.csv'",
    ],
)
def test_a_query_changes_nothing(library: BackedUp, sql: str) -> None:
    catalogue = library.folder / "library-data" / "library.duckdb"
    library.run("query", "SELECT 1")
    before = catalogue.read_bytes(), library.snapshots()
    library.run("query", sql, "--json").assert_failed(2, "read-only")
    assert (catalogue.read_bytes(), library.snapshots()) == before


def output_to(library: BackedUp, arguments: Sequence[str], stdout: int, **options: Any) -> subprocess.Popen[str]:
    """A command whose standard output is this file."""
    settings = {"stderr": subprocess.PIPE, "env": environment(), **options}
    return subprocess.Popen([*BOOKFERRY, *arguments], cwd=library.folder, stdout=stdout, text=True, **settings)


QUERY = ("query", "SELECT * FROM raw_publications", "--limit", "0")


@pytest.mark.long
@pytest.mark.parametrize("arguments", [QUERY, (*QUERY, "--json"), (*QUERY, "--csv")])
def test_a_reader_that_closes_the_pipe_is_no_error(library: BackedUp, arguments: tuple[str, ...]) -> None:
    """`bookferry query … | head`: no traceback, no message, and the status of other tools: 128 + SIGPIPE."""
    variables = environment(PYTHONUNBUFFERED="")  # with it, Python ignores that a write wrote less
    with output_to(library, arguments, subprocess.PIPE, env=variables) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert (process.stderr.read(), process.wait(PATIENCE)) == ("", 141)


@pytest.mark.long
@pytest.mark.parametrize("arguments", [("tables", "--json"), ("--help",), ("--version",)])
@pytest.mark.parametrize("stderr", [subprocess.PIPE, subprocess.STDOUT])
def test_a_reader_that_has_gone_already_is_no_error(library: BackedUp, arguments: tuple[str, ...], stderr: int) -> None:
    """`bookferry tables publications | true`, and `2>&1 | true`: also where all of the output fits into a pipe."""
    reader, writer = os.pipe()
    os.close(reader)
    process = output_to(library, arguments, writer, stderr=stderr)
    os.close(writer)
    assert (process.communicate()[1] or "", process.returncode) == ("", 141)


@pytest.mark.long
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["words", "json"])
def test_a_full_disk_behind_stdout_is_reported(library: BackedUp, form: list[str]) -> None:
    """A result that did not arrive is not a success."""
    with Path("/dev/full").open("w") as full:
        process = output_to(library, ["query", "SELECT 1", *form], full.fileno())
        _, messages = process.communicate()
    assert (process.returncode, messages.count("error: ")) == (1, 1)
    assert "standard output: the disk is full" in messages
    assert "Traceback" not in messages


def test_the_list_of_snapshots(library: BackedUp) -> None:
    """What the backup said, and besides its size and age."""
    first = library.first.document
    [newest] = library.run("snapshots", "list", "library", "--json").document["snapshots"]
    shared_keys = ("tenant", "snapshot", "complete", "counts", "requests", "path")
    assert {name: newest[name] for name in shared_keys} == {name: first[name] for name in shared_keys}
    assert newest["bytes"] > 100_000
    assert 0 <= newest["age_seconds"] < 3600


def test_the_data_dictionary(library: BackedUp, tmp_path: Path) -> None:
    """Every staged table with its sentence and, where there is a backup, its rows; without a configuration too."""
    listed = {entry["table"]: entry for entry in library.run("tables", "--json").document["tables"]}
    assert {"raw_publications", *TABLES} <= set(listed)
    assert listed["publications"]["rows"] == library.sandbox.publications()
    without = {entry["table"]: entry for entry in run("tables", "--json", folder=tmp_path).document["tables"]}
    assert without["publications"]["rows"] is None
    printed = library.run("tables").out
    assert all(table.comment[:80] in printed for table in TABLES.values()), "longer ones are folded"
