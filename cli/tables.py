"""`bookferry tables`: the data dictionary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console

from cli.output import Output, table_of
from pipelines.errors import ConfigurationError, ExitStatus
from pipelines.records.tables import RAW_TABLES, SNAPSHOT_COLUMNS, TABLES, Column, Table
from pipelines.settings import Settings
from pipelines.store.catalogue import SNAPSHOTS, newest_holding
from pipelines.store.stores import open_data


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
