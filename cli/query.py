"""`bookferry query`: runs SQL over the staged tables, from the command line, a file or the examples."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from decimal import Decimal
from itertools import chain, count, islice
from pathlib import Path

import duckdb
from rich.console import RenderableType

from cli.boundary import fail
from cli.options import settings_of
from cli.output import Answer, ReadableTable, say, write
from cli.query_results import BATCH_ROWS, Rows, write_csv, write_csv_file, write_parquet, write_rows_as_json, write_xlsx
from pipelines import examples
from pipelines.errors import ConfigurationError, ExitStatus
from pipelines.humanize import counted
from pipelines.records.values import valid_text
from pipelines.store.catalogue import damage_named, open_catalogue
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.store.stores import open_data

ENDINGS = (".csv", ".parquet", ".xlsx")
"""Kinds of files that a result may be written to."""


def query(
    *,
    sql: str | None = None,
    file: Path | None = None,
    example: str | None = None,
    list_examples: bool = False,
    limit: int,
    csv: bool = False,
    to: Path | None = None,
    personal: bool = False,
    config: str | None,
    json: bool = False,
) -> Answer:
    """Run one query, read-only, or list the examples. An error in the query is exit 2.

    The result is a document (`json`), CSV, a file, whose ending is its kind, or at most `limit` rows for people; 0 for all. `personal`
    includes the personal columns.
    """
    if list_examples:
        return _examples()
    text = _chosen_sql(sql, file, example)
    if valid_text(text) != text:
        raise ConfigurationError(
            "The query is not text in UTF-8. Write it into a file in UTF-8, and name that with --file."
        )
    settings = settings_of(config)
    if csv and (json or to):
        raise ConfigurationError("--csv goes with neither --json nor --to: choose one.")
    ending = to.suffix.lower() if to else ""
    if to is not None and ending not in ENDINGS:
        raise ConfigurationError(f"--to {to}: name a file that ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}.")
    data = open_data(settings)
    with open_catalogue(data, personal=personal) as database:
        if to is not None and ending == ".parquet":
            return _parquet(database, text, to, data)
        columns, batches = ask(database, text, data)
        unread = tables_not_read(database, text)
        for table, tenants in unread.items():
            say(
                f"! {table} was read in no complete snapshot of {', '.join(tenants)}: that it has no rows says nothing about the library. "
                "The view tables_read says why."
            )
        if to is not None:
            write_file = write_xlsx if ending == ".xlsx" else write_csv_file
            return _in_file(to, columns, write_file(to, columns, batches))
        if json:
            failure = write_rows_as_json(columns, batches, not_read=unread)
            status = failure and fail(str(failure), failure.exit_status, as_json=False)
            return Answer(None, status=status or ExitStatus.COMPLETE)
        if csv:
            write_csv(write, columns, batches)
            return Answer(None)
        rows = [*islice(chain.from_iterable(batches), limit + 1 if limit else None)]
    return Answer(None, _lines(columns, rows, limit))


def _chosen_sql(sql: str | None, file: Path | None, name: str | None) -> str:
    """The query of the command line: a text, a file (`-` is standard input), or the name of an example."""
    if [sql, file, name].count(None) != 2:  # noqa: PLR2004  one of three
        raise ConfigurationError(
            'Give one query: as an argument (`bookferry query "SELECT count(*) FROM publications"`), with --file FILE (- is standard '
            "input), or with --example NAME (--list-examples lists them)."
        )
    if name is not None:
        return examples.example(name).sql
    if file is None:
        return sql or ""
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise ConfigurationError(f"--file {file}: cannot be read ({reason}).") from None


def _parquet(database: duckdb.DuckDBPyConnection, sql: str, path: Path, data: DataFolder) -> Answer:
    with _query_errors(data):
        answer = database.sql(sql)
        if answer is None:
            raise ConfigurationError("The query is empty.")
        columns = _distinct(answer.columns)
        return _in_file(path, columns, write_parquet(path, answer, columns))


def _in_file(path: Path, columns: list[str], count: int) -> Answer:
    document = {"columns": columns, "count": count, "path": str(path.absolute())}
    return Answer(document, [f"{counted(count, 'row')} in {path}"])


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


_NOT_READ = """
    SELECT tenant FROM tables_read JOIN snapshots USING (tenant, snapshot)
    WHERE complete AND table_name = ? GROUP BY tenant HAVING NOT bool_or(read) ORDER BY tenant
"""


_TABLE_NAME = re.compile(r'\b(?:from|join)\s+"?(\w+)', re.IGNORECASE)


def tables_not_read(database: duckdb.DuckDBPyConnection, sql: str) -> dict[str, list[str]]:
    """Each table that a query names → the tenants without a complete snapshot that has it."""
    named = {name.lower() for name in _TABLE_NAME.findall(sql)}
    tables = sorted(name.removesuffix("_history").removesuffix("_deleted") for name in named)
    unread = {table: [row[0] for row in database.cursor().execute(_NOT_READ, [table]).fetchall()] for table in tables}
    return {table: tenants for table, tenants in unread.items() if tenants}


@contextmanager
def _query_errors(data: DataFolder | None) -> Iterator[None]:
    """Explains an error of DuckDB. `data`: where a damaged file is looked for."""
    try:
        with damage_named(data) if data else nullcontext():
            yield
    except duckdb.Error as error:
        raise ConfigurationError(
            f"The query cannot be answered: {error}\n`bookferry tables` lists the tables, which are read-only, and their columns; "
            "`bookferry query --personal` has the personal ones, too."
        ) from None


def _lines(columns: list[str], rows: Sequence[tuple[object, ...]], limit: int) -> Iterator[RenderableType]:
    """`limit` rows as a table; 0 for all. If there are more, the last line says so."""
    first = rows[:limit] if limit else rows
    numeric = [name for index, name in enumerate(columns) if first and all(_is_number(row[index]) for row in first)]
    yield ReadableTable(columns, first, right=numeric)
    more = "; there are more (--limit 0 shows all)" if len(rows) > len(first) else ""
    yield f"{counted(len(first), 'row')}{more}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal | None) and not isinstance(value, bool)


def _examples() -> Answer:
    """The example queries with their questions."""
    queries = [
        {"example": query.name, "question": query.question, "sql": query.sql} for query in examples.all_examples()
    ]
    table = ReadableTable(("example", "question"), [(query["example"], query["question"]) for query in queries])
    advice = (
        f"`bookferry query --example NAME` runs an example. To change one, copy NAME.sql from {examples.examples_folder()}, and run your "
        "copy with --file. The same SQL runs on Postgres."
    )
    return Answer({"examples": queries}, [table, advice])


def _distinct(names: list[str]) -> list[str]:
    """Column names without duplicates: two columns with the same name would be one key in JSON."""
    distinct: list[str] = []
    for name in names:
        numbered = (f"{name}_{number}" for number in count(2))
        free = (text for text in numbered if text not in names and text not in distinct)
        distinct.append(next(free) if name in distinct else name)
    return distinct
