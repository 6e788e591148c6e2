"""`bookferry tables`: the data dictionary. `tests.dictionary` makes docs/tables.md of the same descriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType

from cli.output import Answer, ReadableTable
from pipelines.errors import ConfigurationError
from pipelines.records.advice import advice_of
from pipelines.records.identifiers.rules import Rule, Sort
from pipelines.records.tables.description import Column, Table
from pipelines.records.tables.registry import STAGED, raw_table, tables_of
from pipelines.records.tables.shared_columns import VIEW_COLUMNS
from pipelines.settings.settings import Settings
from pipelines.settings.validation_messages import did_you_mean
from pipelines.store.catalogue import (
    SNAPSHOTS,
    SQL_TYPES,
    TABLES_READ,
    deleted_view,
    newest_with_table,
    observed_table,
    resources_of,
    table_views,
)
from pipelines.store.postgres.definitions import sql_type
from pipelines.store.snapshots.snapshots import Snapshot
from pipelines.store.stores import open_data

RULES = "rules"
"""The name for which the command lists the rules of identifiers and records."""


def show_tables(settings: Settings | None, *, table: str | None) -> Answer:
    """The data dictionary: every table, one table with its columns, or the rules.

    `settings`: adds the row counts and the observed columns of the data folder.
    """
    snapshots = open_data(settings).snapshots() if settings is not None else []
    complete = [snapshot for snapshot in snapshots if snapshot.manifest.complete]
    tables = [*_of_resources(complete), SNAPSHOTS, TABLES_READ]
    if table == RULES:
        return Answer({"rules": rules()}, _rules())
    if table is None:
        rows = _row_counts(tables, snapshots, complete)
        return Answer({"tables": [_listed(listed_table, rows) for listed_table in tables]}, _tables(tables, rows))
    views = _views(tables)
    if table not in views:
        names = [*(listed_table.name for listed_table in tables), RULES]
        raise ConfigurationError(
            f"There is no table '{table}'{did_you_mean(table, names)}. Tables: {', '.join(names)}."
        )
    return Answer(_document(table, views[table]), _columns(views[table]))


def rules() -> list[dict[str, str]]:
    """What the column `rule` and the column `code` of tables of issues say, in the words of the reports."""
    return [
        {"rule": rule, "about": rule.sort, "label": rule.label, **advice_of(rule)._asdict()}
        for sort in Sort
        for rule in Rule
        if rule.sort is sort
    ]


def _of_resources(complete: Sequence[Snapshot]) -> list[Table]:
    """The staged tables, with the columns that these snapshots have besides, and the raw ones."""
    resources = resources_of(complete)
    staged = [observed_table(table, resource, complete) for resource in resources for table in tables_of(resource)]
    return [*staged, *map(raw_table, resources)]


def _views(tables: Sequence[Table]) -> dict[str, Table]:
    """All views by their names in queries."""
    views = {table.name: table for table in (SNAPSHOTS, TABLES_READ)}
    for table in tables:
        if table.name not in views:
            views |= {view.name: view for view in table_views(table)}
        if table.name in STAGED:
            views[f"{table.name}_deleted"] = deleted_view(table)
    return views


def _row_counts(tables: Sequence[Table], snapshots: Sequence[Snapshot], complete: Sequence[Snapshot]) -> dict[str, int]:
    """Rows of each table, from the manifests of the newest complete snapshot of every tenant that has the table."""
    if not snapshots:
        return {}
    staged = sum(not table.name.startswith("raw_") for table in tables) - 2
    counts = {SNAPSHOTS.name: len(snapshots), TABLES_READ.name: len(snapshots) * staged}
    for table in tables:
        if newest := newest_with_table(table, complete):
            counts[table.name] = sum(snapshot.manifest.tables[table.name].rows for snapshot in newest)
    return counts


def _listed(table: Table, rows: Mapping[str, int]) -> dict[str, Any]:
    return {
        "table": table.name,
        "comment": table.comment,
        "key": table.key,
        "rows": rows.get(table.name),
        "personal": any(column.personal for column in table.columns),
    }


def _document(name: str, table: Table) -> dict[str, Any]:
    columns = [
        {
            "column": column.name,
            "type": str(column.type),
            **types(column),
            "comment": column.comment,
            "required": column.required,
            "personal": column.personal,
            "references": column.references or None,
        }
        for column in table.columns
    ]
    return {"table": name, "comment": table.comment, "key": table.key, "columns": columns}


def types(column: Column) -> dict[str, str]:
    """The type of a column in Arrow, in DuckDB and in Postgres."""
    return {"arrow": str(column.type), "duckdb": SQL_TYPES[column.type], "postgres": sql_type(column)}


def _tables(tables: Sequence[Table], rows: Mapping[str, int]) -> Iterator[RenderableType]:
    not_read = "not read" if rows else ""
    lines = [
        (table.name, f"{rows[table.name]:,}" if table.name in rows else not_read, table.comment) for table in tables
    ]
    yield ReadableTable(("table", "rows", "contents"), lines, right=("rows",))
    yield (
        "Every table except snapshots contains the newest complete snapshot of each tenant that has it; <table>_history contains every "
        "complete one.\nOnly `bookferry query --personal` shows personal columns (of users and raw_users). `bookferry tables TABLE` "
        "describes the columns, `bookferry tables rules` the rules of identifiers and records."
    )


def _columns(table: Table) -> Iterator[RenderableType]:
    rows = [(column.name, types(column)["duckdb"].lower(), _meaning(column)) for column in table.columns]
    yield ReadableTable(("column", "type", "meaning"), rows, title=table.comment)
    key = dict.fromkeys([*(column.name for column in table.columns if column in VIEW_COLUMNS), *table.key])
    yield f"Key: {', '.join(key)}."
    if any(column.personal for column in table.columns):
        yield "The views leave personal columns out; `bookferry query --personal` shows them."
    if any(column.name == "rule" for column in table.columns):
        yield "`bookferry tables rules` says what the column rule means."


def _meaning(column: Column) -> str:
    return f"{column.comment}{' Always filled.' if column.required else ''}{' Personal.' if column.personal else ''}"


def _rules() -> Iterator[RenderableType]:
    lines = [
        (rule["rule"], rule["about"], " ".join(filter(None, (rule["problem"], rule["suggestion"])))) for rule in rules()
    ]
    yield ReadableTable(("rule", "about", "meaning"), lines)
    yield "These are the values of the column rule of publication_identifiers, and of the column code of tables of issues."
