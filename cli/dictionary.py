"""The data dictionary as Markdown: docs/tables.md, made from the descriptions of the tables and of the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pipelines.records.advice import advice_of
from pipelines.records.identifiers.rules import Rule, Sort
from pipelines.records.tables.description import Column, Table
from pipelines.records.tables.registry import RAW_TABLES, STAGED, TABLES
from pipelines.records.tables.shared_columns import VIEW_COLUMNS
from pipelines.store.catalogue import SNAPSHOTS, SQL_TYPES, TABLES_READ
from pipelines.store.postgres.definitions import sql_type

_HEAD = """\
# Tables

What every table and column means. `bookferry tables --markdown` (in a checkout: `make docs`) makes this page from the descriptions that
also define the Parquet files, the views in DuckDB and Postgres, their comments and the checks in Dagster.
[analysts.md](analysts.md) shows how to query them.

## Which rows a table contains

| name | rows |
|---|---|
| `publications` and every other table | the newest complete snapshot of each library that has the table: the present |
| `publications_history`, and so for every table | every complete snapshot; the column `snapshot` says which |
| `publications_as_of('old', TIMESTAMP '2026-11-01 00:00:00')`, and so for every table | one library as it was at an instant: its newest \
complete snapshot that began by then |
| {deleted} | records that one complete snapshot contains and the next complete one does not; the column `missing_in` names the next one |
| `snapshots` | one row for each snapshot, including partial ones |
| `tables_read` | one row for each snapshot and table: whether it was read. Of a table that was not, no count says anything |

The files of a snapshot have the same names: `snapshots/tenant=old/snapshot=20261120T020000Z/publications.parquet`, and
`raw/publications.parquet` for `raw_publications`. In Postgres the raw tables are left out.

## What all tables have in common

Every table except `snapshots` and `tables_read` begins with three columns. The files of staged tables have `tenant` and `snapshot` at
their end, and the names of the folders say the same. Numbers such as `id` belong to one library. Two libraries use the same numbers, so
**join by `tenant`, too**.

{common}
"Key" lists the columns that, with `tenant` and `snapshot`, identify a row. "Always filled" is a promise; every other column may be empty
(NULL). The views leave **personal** columns out; `bookferry query --personal` shows them. Times are in UTC.

## Observed columns

The service documents the fields of publications, files and users, and not those of hard copies, locations, collections, authorities and
tasks. Their tables, and `users`, have the columns below, and one more for each further field that the service's own records have. It has
the type of all its values: boolean, integer, number, date, text, or JSON for a list. An object becomes columns named after its members,
such as `location_name`; `location.id` fills `location_id`. A column that was seen once stays, with its type; a type only widens, such as
from date to text, and the backup says so. A described column that cannot hold a value has a neighbour with all of them, such as
`acquired_on_raw`. `bookferry tables TABLE` lists the observed columns of your data, and since when each is there.

## All tables

"""

_RULES = """
## Rules

What the column `rule` of [publication_identifiers](#publication_identifiers) and the column `code` of tables of issues say, in the words of
the reports. [identifiers.md](identifiers.md) tells how identifiers are read.
"""


def markdown() -> str:
    """The page docs/tables.md."""
    deleted = ", ".join(f"`{tables[0].name}_deleted`" for tables in STAGED.values())
    parts = [
        _HEAD.format(deleted=deleted, common=_columns(VIEW_COLUMNS)),
        _table(
            ("table", "holds"),
            (
                (f"[{one.name}](#{one.name})", one.comment)
                for one in (*TABLES.values(), SNAPSHOTS, TABLES_READ, *RAW_TABLES)
            ),
        ),
    ]
    for resource, tables in STAGED.items():
        parts += [f"\n## From {resource}\n", *(_section(table) for table in tables)]
    parts += ["\n## About the snapshots\n", _section(SNAPSHOTS), _section(TABLES_READ)]
    parts += ["\n## As the service sent it\n", *(_section(table) for table in RAW_TABLES)]
    parts += [_RULES, *(f"\n### {sort.value}\n\n{_table(('rule', 'meaning'), _rules_of(sort))}" for sort in Sort)]
    return "".join(parts)


def _rules_of(sort: Sort) -> Iterator[tuple[str, str]]:
    for rule in Rule:
        if rule.sort is sort:
            label = f"**{rule.label}**:" if rule.label else ""
            yield f"`{rule}`", " ".join(filter(None, (label, *advice_of(rule)))).replace("&", "&amp;")


def _section(table: Table) -> str:
    key = ", ".join(f"`{name}`" for name in table.key)
    return f"\n### {table.name}\n\n{table.comment} Key: {key}.\n\n{_columns(table.columns)}"


def _columns(columns: Iterable[Column]) -> str:
    return _table(("column", "Arrow", "DuckDB", "Postgres", "meaning"), map(_column, columns))


def _column(column: Column) -> tuple[str, ...]:
    return (f"`{column.name}`", *types(column), " ".join(_meaning(column)))


def types(column: Column) -> tuple[str, str, str]:
    """The type of a column in Arrow, in DuckDB and in Postgres."""
    return str(column.type), SQL_TYPES[column.type], sql_type(column)


def _meaning(column: Column) -> Iterator[str]:
    of = column.references
    yield column.comment.replace(f"({of})", f"([{of}](#{of.partition('.')[0]}))") if of else column.comment
    if column.required:
        yield "Always filled."
    if column.personal:
        yield "**Personal.**"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *(tuple(cell.replace("|", "\\|") for cell in row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
