"""`bookferry query`: runs SQL over the staged tables, from the command line, a file or the examples."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, islice
from pathlib import Path

import duckdb
from rich.console import Console

from cli.answers import BATCH_ROWS, Rows, write_csv, write_csv_file, write_json, write_parquet, write_xlsx
from cli.boundary import fail
from cli.output import Output, print_table
from pipelines.errors import ConfigurationError, ExitStatus
from pipelines.examples import all_examples, example, examples_folder
from pipelines.humanize import counted
from pipelines.records.values import valid_text
from pipelines.settings.settings import Settings
from pipelines.store.catalogue import damage_named, open_catalogue
from pipelines.store.encryption import personal_keys
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.store.stores import open_data

ENDINGS = (".csv", ".parquet", ".xlsx")
"""Kinds of files that a result may be written to."""


@dataclass(frozen=True)
class OutputFormat:
    """The form of the result without --json: `limit` rows on the terminal (0: all), CSV, or a file, whose ending is its kind."""

    limit: int
    csv: bool
    file: Path | None


def chosen_sql(sql: str | None, file: Path | None, name: str | None) -> str:
    """The query of the command line: a text, a file (`-` is standard input), or the name of an example."""
    if [sql, file, name].count(None) != 2:  # noqa: PLR2004  one of three
        raise ConfigurationError(
            'Give one query: as an argument (`bookferry query "SELECT count(*) FROM publications"`), with --file FILE (- is standard '
            "input), or with --example NAME (--list-examples lists them)."
        )
    if name is not None:
        return example(name).sql
    if file is None:
        return sql or ""
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise ConfigurationError(f"--file {file}: cannot be read ({reason}).") from None


def answer_query(settings: Settings, sql: str, output: Output, form: OutputFormat, *, personal: bool) -> ExitStatus:
    """Run one query, read-only. An error in it is exit 2. `personal` includes the personal columns."""
    if valid_text(sql) != sql:
        raise ConfigurationError(
            "The query is not text in UTF-8. Write it into a file in UTF-8, and name that with --file."
        )
    if form.csv and (output.as_json or form.file):
        raise ConfigurationError("--csv goes with neither --json nor --to: choose one.")
    ending = form.file.suffix.lower() if form.file else ""
    if form.file is not None and ending not in ENDINGS:
        raise ConfigurationError(
            f"--to {form.file}: name a file that ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}."
        )
    data = open_data(settings, personal_keys(settings))
    with open_catalogue(data, personal=personal) as database:
        if form.file is not None and ending == ".parquet":
            return _write_parquet(database, sql, form.file, output, data)
        columns, batches = ask(database, sql, data)
        unread = tables_not_read(database, sql)
        for table, tenants in unread.items():
            output.say(
                f"! {table} was not read in the newest complete snapshot of {', '.join(tenants)}: that it has no rows says nothing about "
                "the library. The view tables_read says why."
            )
        if form.file is not None:
            write = write_xlsx if ending == ".xlsx" else write_csv_file
            _report_file(output, form.file, columns, write(form.file, columns, batches))
            return ExitStatus.COMPLETE
        if output.as_json:
            failure = write_json(output, columns, batches, not_read=unread)
            return ExitStatus.COMPLETE if failure is None else fail(str(failure), failure.exit_status, as_json=False)
        if form.csv:
            write_csv(output.write, columns, batches)
        else:
            rows = [*islice(chain.from_iterable(batches), form.limit + 1 if form.limit else None)]
            output.result({}, lambda console: print_rows(console, columns, rows, form.limit))
    return ExitStatus.COMPLETE


def _write_parquet(
    database: duckdb.DuckDBPyConnection, sql: str, path: Path, output: Output, data: DataFolder
) -> ExitStatus:
    with _query_errors(data):
        answer = database.sql(sql)
        if answer is None:
            raise ConfigurationError("The query is empty.")
        columns = _distinct(answer.columns)
        count = write_parquet(path, answer, columns)
    _report_file(output, path, columns, count)
    return ExitStatus.COMPLETE


def _report_file(output: Output, path: Path, columns: list[str], count: int) -> None:
    document = {"columns": columns, "count": count, "path": str(path.absolute())}
    output.result(document, lambda console: console.print(f"{counted(count, 'row')} in {path}"))


def ask(
    database: duckdb.DuckDBPyConnection, sql: str, data: DataFolder | None = None
) -> tuple[list[str], Iterator[Rows]]:
    """Column names (made distinct) of the last statement, and its rows in batches, as DuckDB produces them.

    `data`: where a damaged file is looked for after an error.
    """
    with _query_errors(data):
        result = database.execute(sql)
        if result is None:
            raise ConfigurationError("The query is empty.")
        columns = _distinct([column[0] for column in result.description or ()])

    def batches() -> Iterator[Rows]:
        with _query_errors(data):
            while rows := result.fetchmany(BATCH_ROWS):
                yield rows

    return columns, batches()


def run_sql(database: duckdb.DuckDBPyConnection, sql: str) -> tuple[list[str], list[tuple[object, ...]]]:
    """Column names and all rows of a query with a small result."""
    columns, batches = ask(database, sql)
    return columns, [row for rows in batches for row in rows]


_NOT_READ = """
    SELECT tenant FROM tables_read
    WHERE table_name = ? AND NOT read
    AND (tenant, snapshot) IN (SELECT (tenant, max(snapshot)) FROM snapshots WHERE complete GROUP BY tenant)
    ORDER BY tenant
"""


_TABLE_NAME = re.compile(r'\b(?:from|join)\s+"?(\w+)', re.IGNORECASE)


def tables_not_read(database: duckdb.DuckDBPyConnection, sql: str) -> dict[str, list[str]]:
    """Each table that a query names → the tenants of whose newest complete snapshot it is no part."""
    named = {name.lower() for name in _TABLE_NAME.findall(sql)}
    tables = sorted(name.removesuffix("_history").removesuffix("_deleted") for name in named)
    unread = {table: [row[0] for row in database.cursor().execute(_NOT_READ, [table]).fetchall()] for table in tables}
    return {table: tenants for table, tenants in unread.items() if tenants}


@contextmanager
def _query_errors(data: DataFolder | None = None) -> Iterator[None]:
    """Explains an error of DuckDB. `data`: where a damaged file is looked for."""
    try:
        with damage_named(data) if data else nullcontext():
            yield
    except duckdb.Error as error:
        raise ConfigurationError(
            f"The query cannot be answered: {error}\n`bookferry tables` lists the tables, which are read-only, and their columns; "
            "`bookferry query --personal` has the personal ones, too."
        ) from None


def print_rows(
    console: Console,
    columns: list[str],
    rows: Sequence[tuple[object, ...]],
    limit: int = 0,
    remedy: str = "--limit 0 shows all",
) -> None:
    """Print `limit` rows as a table. If there are more, the last line says so, with the `remedy`."""
    first = rows[:limit] if limit else rows
    numeric = [name for index, name in enumerate(columns) if first and all(_is_number(row[index]) for row in first)]
    print_table(console, columns, first, right=numeric)
    more = f"; there are more ({remedy})" if len(rows) > len(first) else ""
    console.print(f"{counted(len(first), 'row')}{more}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal | None) and not isinstance(value, bool)


def list_examples(output: Output) -> ExitStatus:
    """List the example queries with their questions."""
    examples = all_examples()
    document = {
        "examples": [
            {"example": query.name, "question": query.question, "notes": query.notes, "sql": query.sql}
            for query in examples
        ]
    }

    def render(console: Console) -> None:
        rows = [(query.name, query.question) for query in examples]
        print_table(console, ("example", "question"), rows)
        console.print(
            f"`bookferry query --example NAME` runs an example. To change one, copy NAME.sql from {examples_folder()}, and run your copy "
            "with --file. The same SQL runs on Postgres."
        )

    output.result(document, render)
    return ExitStatus.COMPLETE


def _distinct(names: list[str]) -> list[str]:
    """Column names without duplicates: two columns with the same name would be one key in JSON."""
    seen = [names[: place + 1].count(name) for place, name in enumerate(names)]
    return [name if count == 1 else f"{name}_{count}" for name, count in zip(names, seen, strict=True)]
