"""`bookferry query` and `bookferry tables`: SQL over the staged tables, and what they mean."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import duckdb
from rich.console import Console

from cli.output import Output, counted, print_table, table_of
from pipelines.errors import ConfigurationError, ExitStatus
from pipelines.records.tables import PERSONAL_TABLES, RAW_TABLES, SNAPSHOT_COLUMNS, TABLES, Column, Table
from pipelines.settings import Settings
from pipelines.store.catalogue import SNAPSHOTS, newest_holding, open_catalogue
from pipelines.store.sealing import personal_keys
from pipelines.store.stores import open_data

_CHANGES = {
    getattr(duckdb.StatementType, kind) for kind in ("INSERT", "UPDATE", "DELETE", "COPY", "CREATE", "ALTER", "DROP")
}


def answer_query(
    settings: Settings, sql: str | None, file: Path | None, limit: int, output: Output, *, personal: bool = False
) -> ExitStatus:
    """Run one query read-only; mistakes in it are the caller's to mend (exit 2). `personal`: with all columns of the tables of people."""
    text = _sql(sql, file)
    with open_catalogue(open_data(settings, personal_keys(settings)), personal=personal) as database:
        columns, rows = run_sql(database, text, None if output.as_json or not limit else limit + 1)
        document = {
            "columns": columns,
            "rows": [dict(zip(columns, row, strict=True)) for row in rows],
            "count": len(rows),
        }
        output.result(document, lambda console: print_rows(console, columns, rows, limit))
    return ExitStatus.COMPLETE


def run_sql(
    database: duckdb.DuckDBPyConnection, sql: str, most: int | None = None
) -> tuple[list[str], list[tuple[object, ...]]]:
    """Column names (made distinct) and rows of the last statement, `most` of them where given."""
    try:
        result = database.execute(sql)
        if result is None:
            raise ConfigurationError("The query is empty.")
        columns = _distinct([column[0] for column in result.description or ()])
        return columns, result.fetchall() if most is None else result.fetchmany(most)
    except duckdb.Error as error:
        raise ConfigurationError(f"The query cannot be answered: {error}\n{_advice(database, sql)}") from None


def _advice(database: duckdb.DuckDBPyConnection, sql: str) -> str:
    """What may help after an error; what DuckDB says of a write to a read-only view does not."""
    with suppress(duckdb.Error):
        if not _CHANGES.isdisjoint(statement.type for statement in database.extract_statements(sql)):
            return "The tables are read-only here: only a backup changes them."
    about_people = " `bookferry query --personal` shows their personal columns." if _names_people(sql) else ""
    return f"`bookferry tables` lists tables and columns.{about_people}"


def _names_people(sql: str) -> bool:
    return not PERSONAL_TABLES.isdisjoint(re.findall(r"\w+?(?=(?:_history|_as_of|_deleted)?\b)", sql.lower()))


def print_rows(console: Console, columns: list[str], rows: list[tuple[object, ...]], limit: int = 0) -> None:
    """A table on the terminal, `limit` rows of it; says so when there are more."""
    shown = rows[:limit] if limit else rows
    numeric = [name for index, name in enumerate(columns) if shown and all(_is_number(row[index]) for row in shown)]
    print_table(console, columns, shown, right=numeric)
    more = "; there are more (--limit 0 shows all)" if len(rows) > len(shown) else ""
    console.print(f"{counted(len(shown), 'row')}{more}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal | None) and not isinstance(value, bool)


def show_tables(settings: Settings | None, name: str | None, output: Output) -> ExitStatus:
    """The data dictionary: every table with its sentence, or one with its columns. `settings` adds how many rows there are now."""
    if name is None:
        rows = _row_counts(settings)
        listed = [
            {
                "table": one.name,
                "comment": one.comment,
                "key": list(one.key),
                "rows": rows.get(one.name),
                "personal": any(column.personal for column in one.columns),
            }
            for one in _described()
        ]
        output.result({"tables": listed}, lambda console: _print_tables(console, rows))
        return ExitStatus.COMPLETE
    table = next((one for one in _described() if one.name == name.removesuffix("_history")), None)
    if table is None:
        raise ConfigurationError(f"There is no table '{name}'. Tables: {', '.join(one.name for one in _described())}.")
    columns = (*(() if table is SNAPSHOTS else SNAPSHOT_COLUMNS), *table.columns)
    document = {
        "table": name,
        "comment": table.comment,
        "columns": [
            {"column": one.name, "type": str(one.type), "comment": one.comment, "personal": one.personal}
            for one in columns
        ],
    }
    output.result(document, lambda console: _print_columns(console, table.comment, columns))
    return ExitStatus.COMPLETE


def _print_columns(console: Console, title: str, columns: Sequence[Column]) -> None:
    rows = [(one.name, str(one.type), "personal" if one.personal else "", one.comment) for one in columns]
    if any(one.personal for one in columns):
        console.print(table_of(("column", "type", "", "meaning"), rows, title=title))
        console.print("Personal columns are in no view that everybody sees: `bookferry query --personal` shows them.")
    else:
        console.print(table_of(("column", "type", "meaning"), [(*row[:2], row[3]) for row in rows], title=title))


def _described() -> list[Table]:
    return [*TABLES.values(), *RAW_TABLES, SNAPSHOTS]


def _row_counts(settings: Settings | None) -> dict[str, int]:
    """Rows of each table, from the manifests: those of the newest complete snapshot of every tenant that holds it."""
    if settings is None:
        return {}
    snapshots = open_data(settings).snapshots()
    complete = [snapshot for snapshot in snapshots if snapshot.manifest.complete]
    counts = Counter({SNAPSHOTS.name: len(snapshots)} if snapshots else {})
    for table in (*TABLES.values(), *RAW_TABLES):
        holding = newest_holding(table, complete)
        if holding:
            counts[table.name] = sum(one.manifest.tables[table.name].rows for one in holding)
    return counts


def _print_tables(console: Console, rows: dict[str, int]) -> None:
    lines = [(one.name, f"{rows[one.name]:,}" if one.name in rows else "", one.comment) for one in _described()]
    console.print(table_of(("table", "rows", "what it holds"), lines, right=("rows",), whole=("table",)))
    console.print(
        "All but snapshots hold the newest complete snapshot of each tenant that holds them; <table>_history holds every complete one.\n"
        "Personal columns (of users and raw_users) are shown by `bookferry query --personal` only. `bookferry tables TABLE` describes the "
        "columns."
    )


def _sql(sql: str | None, file: Path | None) -> str:
    if (sql is None) == (file is None):
        raise ConfigurationError(
            'Give the query as an argument or with --file: bookferry query "SELECT count(*) FROM publications".'
        )
    if file is None:
        return sql or ""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--file {file}: cannot be read ({error}).") from None


def _distinct(names: list[str]) -> list[str]:
    """Two columns of one name would be one key in JSON."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return result
