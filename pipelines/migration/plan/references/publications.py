"""The additional fields of publications that refer to other records (`FieldRule.leads_to`): their ids as those of the target.

Before the publications are compared, it is written beside those of the source which records of the target its ids became. A record that is
still to be created is `{"source": id}`; the apply of a plan sends its id once there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from pipelines.migration.model.comparable import RECORDS, STEP, ComparableLibrary, column_of
from pipelines.migration.model.plan import PlannedReference
from pipelines.migration.model.resource_types import PUBLICATIONS, is_written_later
from pipelines.migration.plan.references.contributors import UNKNOWN, map_contributors
from pipelines.records.additional_fields import FieldRule
from pipelines.records.batches import batch_of_rows
from pipelines.records.residue import residue_json
from pipelines.records.tables.description import Column, Table
from pipelines.records.values import compact_json
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import connect_duckdb, escaped, literal, quoted, table_writer

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from pipelines.migration.plan.match_store import MatchStore

_NUMBER = pa.int64()
LINKS = Table(
    "links",
    "One row for each record to which a field of publications of the source refers.",
    ("field", "source_id"),
    (
        Column("field", pa.string(), "The field.", required=True),
        Column("resource", pa.string(), "The resource of the record.", required=True),
        Column("source_id", _NUMBER, "The record in the source.", required=True),
        Column("target_id", _NUMBER, "The record in the target; empty where there is none yet."),
        Column("is_there", pa.bool_(), "Whether the target has the record, or will have it.", required=True),
    ),
)

_IDS = (
    "unnest(CASE WHEN starts_with({column}, '[') THEN from_json({column}, '[\"BIGINT\"]') ELSE [{column}::BIGINT] END)"
)
"""SQL of the ids in the compared form of a field."""

_MAPPED = """
    CREATE TABLE {table} AS
    SELECT id, coalesce(
        CASE WHEN is_list THEN '[' || string_agg(value, ',' ORDER BY number) || ']' ELSE min(value) END, '{unknown}'
    ) AS value
    FROM (
        SELECT
            r.id, r.is_list, coalesce(l.target_id, l.source_id) AS number,
            CASE
                WHEN l.target_id IS NOT NULL THEN l.target_id::VARCHAR
                WHEN l.is_there THEN '{{"source":' || l.source_id || '}}'
            END AS value
        FROM (
            SELECT id, starts_with({column}, '[') AS is_list, {ids} AS linked
            FROM read_parquet({records}) WHERE {column} IS NOT NULL
        ) AS r
        LEFT JOIN links AS l ON l.field = {field} AND l.source_id = r.linked
    )
    GROUP BY id, is_list
"""


def map_references(
    database: DuckDBPyConnection,
    side: ComparableLibrary,
    *,
    find_target: Callable[[str, int], int | None] | None = None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Replace the view `source` by one whose references lead to records of the target.

    Returns the documented and the additional fields that are mapped. `find_target`: finds a record that has been created since.
    """
    records = f"read_parquet({literal(escaped(side.path(RECORDS)))})"
    links = tuple(_map_links(database, side, records, find_target)) if side.path(LINKS).exists() else ()
    return tuple(map_contributors(database, side, "linked" if links else records, find_target=find_target)), links


def _map_links(
    database: DuckDBPyConnection,
    side: ComparableLibrary,
    records: str,
    find_target: Callable[[str, int], int | None] | None,
) -> Iterator[str]:
    """Make the views `linked` and `source`, in which links lead to records of the target; yield their fields."""
    database.execute(f"CREATE TABLE links AS FROM read_parquet({literal(escaped(side.path(LINKS)))})")
    if find_target is not None:
        waiting = database.execute(
            "SELECT resource, source_id FROM links WHERE is_there AND target_id IS NULL"
        ).fetchall()
        created = [(find_target(resource, source_id), resource, source_id) for resource, source_id in waiting]
        if created:
            database.executemany("UPDATE links SET target_id = ? WHERE resource = ? AND source_id = ?", created)
    fields = [name for (name,) in database.execute("SELECT DISTINCT field FROM links ORDER BY field").fetchall()]
    columns, joins = [], []
    for place, name in enumerate(fields):
        column, table = quoted(column_of(name)), f"mapped_link_{place}"
        ids = _IDS.format(column=column)
        database.execute(
            _MAPPED.format(
                table=table,
                column=column,
                ids=ids,
                field=literal(name),
                unknown=UNKNOWN,
                records=literal(escaped(side.path(RECORDS))),
            )
        )
        columns.append(f"{table}.value AS {column}")
        joins.append(f"LEFT JOIN {table} ON {table}.id = r.id")
    if fields:
        database.execute(
            f"CREATE OR REPLACE TEMP VIEW linked AS SELECT r.* REPLACE ({', '.join(columns)}) FROM {records} AS r {' '.join(joins)}"  # noqa: S608
        )
        database.execute("CREATE OR REPLACE TEMP VIEW source AS FROM linked")
    yield from fields


class PublicationLinks:
    """The links of publications, record for record. `rules`: of the additional fields that refer to other records.

    `store`: knows the records to which they lead.
    """

    def __init__(self, store: MatchStore, rules: Mapping[str, FieldRule]) -> None:
        self._store = store
        self._rules = rules

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that refer to other records."""
        return tuple(self._rules)

    def write(self, side: ComparableLibrary) -> None:
        """Write which records of the target those of the source are, in a file beside its publications."""
        if not self._rules:
            return
        records, path = literal(escaped(side.path(RECORDS))), side.path(LINKS)
        with storage_errors(path), connect_duckdb() as database, table_writer(path, LINKS) as writer:
            for name, rule in self._rules.items():
                column = quoted(column_of(name))
                found = database.execute(
                    f"SELECT DISTINCT {_IDS.format(column=column)} FROM read_parquet({records}) WHERE {column} IS NOT NULL"  # noqa: S608  our own names
                )
                while ids := found.fetchmany(STEP):
                    rows = [
                        (name, rule.leads_to, source_id, target_id, is_there)
                        for (source_id,) in ids
                        for is_there, target_id in [self._store.target_of(rule.leads_to, source_id)]
                    ]
                    writer.write(batch_of_rows(LINKS, rows))

    def map_record(self, record: dict[str, Any]) -> dict[str, PlannedReference]:
        """Replace the links of a row of `RECORDS` by those of the target, as the view `source` has them, and list the others as unsent.

        Returns the references to records that are still to be created.
        """
        references, unsent = dict[str, PlannedReference](), dict[str, Any]()
        for name, rule in self._rules.items():
            if (text := record[column_of(name)]) is None:
                continue
            value = msgspec.json.decode(text)
            many = isinstance(value, list)
            found = [(one, *self._store.target_of(rule.leads_to, one)) for one in (value if many else [value])]
            there = sorted(
                ((source_id, target_id) for source_id, is_there, target_id in found if is_there),
                key=lambda pair: pair[1] or pair[0],
            )
            if len(there) < len(found):
                missing = [source_id for source_id, is_there, _target_id in found if not is_there]
                unsent[name] = missing if many else missing[0]
            compared = [{"source": source_id} if target_id is None else target_id for source_id, target_id in there]
            record[column_of(name)] = compact_json(compared if many else compared[0]) if there else None
            if any(target_id is None for _source_id, target_id in there):
                references[name] = self._reference(record["id"], rule, there, many=many)
        if unsent:
            others = msgspec.json.decode(record["unsent"]) if record["unsent"] else {}
            record["unsent"] = residue_json({**others, **unsent})
        return references

    def _reference(
        self, record_id: int, rule: FieldRule, pairs: list[tuple[int, int | None]], *, many: bool
    ) -> PlannedReference:
        waits = [
            source_id
            for source_id, target_id in pairs
            if target_id is None and not (rule.leads_to == PUBLICATIONS and self._store.precedes(source_id, record_id))
        ]
        return PlannedReference(
            rule.leads_to,
            [source_id for source_id, _target_id in pairs],
            [target_id for _source_id, target_id in pairs],
            many,
            as_object=rule.as_object,
            as_text=rule.as_text,
            later=bool(waits) and is_written_later(rule.leads_to, PUBLICATIONS),
        )

    def sent(self, payload: dict[str, str]) -> dict[str, str]:
        """Field → JSON, with links in the form in which the target takes them."""
        if not self._rules:
            return payload
        return {
            name: compact_json(self._rules[name].sent(msgspec.json.decode(text))) if name in self._rules else text
            for name, text in payload.items()
        }
