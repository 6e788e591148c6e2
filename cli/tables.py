"""`bookferry tables`: the data dictionary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from cli.dictionary import markdown, types
from cli.output import Output, print_table
from pipelines.errors import ConfigurationError, ExitStatus
from pipelines.records.tables.description import Column, Table
from pipelines.records.tables.registry import RAW_TABLES, STAGED, TABLES
from pipelines.records.tables.shared_columns import VIEW_COLUMNS
from pipelines.settings.settings import Settings
from pipelines.settings.validation_messages import did_you_mean
from pipelines.store.catalogue import SNAPSHOTS, TABLES_READ, deleted_view, newest_with_table, observed_table
from pipelines.store.snapshots.snapshots import Snapshot
from pipelines.store.stores import open_data


def show_tables(settings: Settings | None, name: str | None, output: Output) -> ExitStatus:
    """Show the data dictionary: every table with its description, or one table with its columns.

    `settings`: adds the row counts and the observed columns of the data folder.
    """
    complete = _complete_snapshots(settings)
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
            for one in _described(complete)
        ]
        output.result({"tables": listed}, lambda console: _print_tables(console, rows))
        return ExitStatus.COMPLETE
    table = _view(name, _described(complete))
    document = {
        "table": name,
        "comment": table.comment,
        "key": list(table.key),
        "columns": [
            {
                "column": one.name,
                "type": str(one.type),
                **dict(zip(("arrow", "duckdb", "postgres"), types(one), strict=True)),
                "comment": one.comment,
                "required": one.required,
                "personal": one.personal,
                "references": one.references or None,
            }
            for one in table.columns
        ],
    }
    output.result(document, lambda console: _print_columns(console, table))
    return ExitStatus.COMPLETE


def print_dictionary(output: Output) -> ExitStatus:
    """Print the whole data dictionary, as the Markdown of docs/tables.md."""
    text = markdown()
    output.result({"markdown": text}, lambda _console: output.write(text))
    return ExitStatus.COMPLETE


def _view(name: str, described: Sequence[Table]) -> Table:
    """The description of a view, by its name in queries."""
    views = {one.name: one for one in described}
    if name in views:
        table = views[name]
    elif (base := name.removesuffix("_history")) in views and views[base] is not SNAPSHOTS:
        table = replace(views[base], comment=f"{views[base].comment} Every complete snapshot.")
    elif (base := name.removesuffix("_deleted")) in {tables[0].name for tables in STAGED.values()}:
        return deleted_view(views[base])
    else:
        known = [*views]
        raise ConfigurationError(f"There is no table '{name}'{did_you_mean(name, known)}. Tables: {', '.join(known)}.")
    return table if table in (SNAPSHOTS, TABLES_READ) else replace(table, columns=(*VIEW_COLUMNS, *table.columns))


def _print_columns(console: Console, table: Table) -> None:
    rows = [(one.name, types(one)[1].lower(), _meaning(one)) for one in table.columns]
    print_table(console, ("column", "type", "meaning"), rows, title=table.comment)
    key = dict.fromkeys([*(one.name for one in table.columns if one in VIEW_COLUMNS), *table.key])
    console.print(f"Key: {', '.join(key)}.")
    if any(one.personal for one in table.columns):
        console.print("The views leave personal columns out; `bookferry query --personal` shows them.")


def _meaning(column: Column) -> str:
    return f"{column.comment}{' Always filled.' if column.required else ''}{' Personal.' if column.personal else ''}"


def _described(complete: Sequence[Snapshot] = ()) -> list[Table]:
    """Every table, with the columns that these snapshots have besides."""
    staged = [
        observed_table(table, resource, complete) if table is tables[0] else table
        for resource, tables in STAGED.items()
        for table in tables
    ]
    return [*staged, *RAW_TABLES, SNAPSHOTS, TABLES_READ]


def _complete_snapshots(settings: Settings | None) -> list[Snapshot]:
    if settings is None:
        return []
    return [snapshot for snapshot in open_data(settings).snapshots() if snapshot.manifest.complete]


def _row_counts(settings: Settings | None) -> dict[str, int]:
    """Rows of each table, from the manifests of the newest complete snapshot of every tenant that has the table."""
    if settings is None:
        return {}
    snapshots = open_data(settings).snapshots()
    complete = [snapshot for snapshot in snapshots if snapshot.manifest.complete]
    read = {SNAPSHOTS.name: len(snapshots), TABLES_READ.name: len(snapshots) * len(TABLES)}
    counts = Counter(read if snapshots else {})
    for table in (*TABLES.values(), *RAW_TABLES):
        holding = newest_with_table(table, complete)
        if holding:
            counts[table.name] = sum(one.manifest.tables[table.name].rows for one in holding)
    return counts


def _print_tables(console: Console, rows: dict[str, int]) -> None:
    not_read = "not read" if rows else ""
    lines = [
        (table.name, f"{rows[table.name]:,}" if table.name in rows else not_read, table.comment)
        for table in _described()
    ]
    print_table(console, ("table", "rows", "contents"), lines, right=("rows",))
    console.print(
        "Every table except snapshots contains the newest complete snapshot of each tenant that has it; <table>_history contains every "
        "complete one.\nOnly `bookferry query --personal` shows personal columns (of users and raw_users). `bookferry tables TABLE` "
        "describes the columns."
    )
