"""What changed from one snapshot to the next, and how it is written into the tables of the first.

A record's rows are the same where its bytes are the same and the rules of staging are, so that the SHA-256 of the records tells which ones
to read. Where a service signs the addresses of files anew for each response, many records have another SHA-256 and the same rows; then the
rows are compared, and of a record that changed in nothing else the checksum alone is written. One transaction ends the rows that changed,
and writes the new ones. It takes no lock that a reader would wait for, and an older transaction goes on to see the older night (I5).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.errors import StorageError
from pipelines.records.rules import name_of_rules
from pipelines.records.tables.description import Table
from pipelines.records.tables.registry import MADE_FROM, STAGED, TABLES
from pipelines.store.parquet import escaped, literal, quoted, read_parquet, register_key
from pipelines.store.postgres.copying import CopyProgress, copy_rows
from pipelines.store.postgres.definitions import column_list, create_table
from pipelines.store.postgres.schemas import columns_of
from pipelines.store.postgres.server import Server, Session
from pipelines.store.postgres.whole_loads import LOADED_TABLES, Loads, WholeLoad
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

if TYPE_CHECKING:
    import duckdb

FEW = 10_000
"""Changed records that are always written alone: that takes less time than making the tables of a small library anew."""

MOST_CHANGED = 0.1
"""Share of the records of a resource up to which changes are written alone. A tenth of a million takes half of the time of a whole load; of
many more, a whole load is faster, and leaves tables without gaps."""

COMPARED = 0.02
"""Share of the records of a resource from which their rows are compared: their checksums may be all that differs. To compare the rows of a
million publications takes longer than to write the rows of so many."""

BATCH_ROWS = 10_000
"""Rows of a batch of changes."""


def load_rules(table: Table, snapshot: Snapshot) -> str:
    """The name of the rules of a table's rows: changes are written only into rows of the same. Empty for snapshots without such a name."""
    resource = _resource_of(table)
    staged = snapshot.manifest.staging_rules.get(resource)
    return name_of_rules(staged, [column.name for column in table.columns]) if staged else ""


def _resource_of(table: Table) -> str:
    return MADE_FROM[table.name].removeprefix("raw_")


_DOWNLOADED = {
    table.name: f"{table.name}_ids"
    for table in TABLES.values()
    if any(not column.made_from for column in table.columns)
}
"""Tables with results of downloads, which are not in a record → the name of a table of ids for them."""


@dataclass(frozen=True)
class Change:
    """The table of a load whose rows change."""

    table: Table
    load: WholeLoad
    relation: str
    """The quoted name of the load's table."""


def changes_into(
    schema: str, loads: Loads, tables: Sequence[Table], snapshot: Snapshot, gone: Collection[str]
) -> tuple[str, list[Change]] | None:
    """The snapshot that `snapshot` follows in all its tables, and these, parents first; None if it has to be loaded whole.

    It has to if a table is not there, has other rules, keys that its rows violate, the snapshot itself, or the rows of another one than the
    newest before it, or one that is `gone`; and if a load would be left without any snapshot, because only a swap drops tables.
    """
    found, before, name = list[Change](), set[str](), snapshot.manifest.snapshot
    for table in tables:
        there = loads.get(table.name, ())
        shown = {one for load in there for one in load.snapshots}
        newest = max((one for one in shown if one < name), default="")
        load = next((load for load in there if newest in load.snapshots), None)
        if name in shown or load is None or load.is_closed or load.last != newest:
            return None
        if not load.rules or load.rules != load_rules(table, snapshot):
            return None
        before.add(newest)
        found.append(Change(table, load, quoted(schema, load.relation)))
    emptied = any(not {*load.snapshots} - {*gone} for there in loads.values() for load in there)
    if emptied or len(before) != 1:
        return None
    (one,) = before
    return None if one in gone else (one, sorted(found, key=lambda change: _depth(change.table)))


def _depth(table: Table) -> int:
    """How many tables stand above this one: those that it refers to, and those that they do."""
    parents = (TABLES[column.references.partition(".")[0]] for column in table.columns if column.references)
    return max((_depth(parent) + 1 for parent in parents), default=0)


class Differences:
    """The rows that differ between two snapshots, found with DuckDB in bounded memory.

    What is compared are hashes, because the texts themselves would not fit into memory: a hash of 64 bits for each half of a checksum, and
    one for the other columns of a row. Each is compared with that of the same record in the other snapshot alone.
    """

    def __init__(
        self, database: duckdb.DuckDBPyConnection, data: DataFolder, before: Snapshot, after: Snapshot
    ) -> None:
        self._database = database
        self._sides = (before, after)
        self._compared = set[str]()
        """The resources whose rows were compared, because many checksums differ."""
        for fingerprint in data.keys.fingerprints:
            register_key(database, data.keys.get(fingerprint))

    def find_records(self, tables: Sequence[Table]) -> bool:
        """Find the records that differ. Returns whether they are few enough."""
        for resource in dict.fromkeys(_resource_of(table) for table in tables):
            of_both = [side.manifest.resources[resource] for side in self._sides]
            if any(facts.without_id or facts.records != facts.distinct_ids for facts in of_both):
                return False  # ids do not tell its records apart
            records = STAGED[resource][0]
            if any(self._has_nulls(side, records) for side in self._sides):
                return False  # an id that is a text is no key
            old, new = (
                f"(SELECT id, hash(left(sha256, 32)) AS one, hash(right(sha256, 32)) AS other FROM {self._file(side, records)})"  # noqa: S608  names and files of ours
                for side in self._sides
            )
            self._database.execute(
                f"CREATE TABLE {resource} AS SELECT coalesce(n.id, o.id) AS id, n.id IS NULL AS gone FROM {new} AS n "  # noqa: S608  as above
                f"FULL JOIN {old} AS o ON n.id = o.id WHERE n.one IS DISTINCT FROM o.one OR n.other IS DISTINCT FROM o.other"
            )
            records_of_larger = max(facts.records for facts in of_both)
            most = max(FEW, MOST_CHANGED * records_of_larger)
            of_resource = [table for table in tables if _resource_of(table) == resource]
            if self._count(resource) > COMPARED * records_of_larger:
                self._compare_rows(of_resource, resource)
            downloaded = [table for table in of_resource if table.name in _DOWNLOADED]
            for table in downloaded:
                self._compare_downloads(table, resource)
            if any(self._count(ids) > most for ids in (resource, *(_DOWNLOADED[table.name] for table in downloaded))):
                return False
        return True

    def find_checksums(self, table: Table) -> pa.RecordBatchReader | None:
        """Id and SHA-256 of the records that changed in nothing else; None where rows were not compared."""
        resource = _resource_of(table)
        if table.name != STAGED[resource][0].name or resource not in self._compared:
            return None
        others = f"SELECT id, sha256 FROM {self._file(self._sides[1], table)} WHERE id IN (SELECT id FROM {_signed_anew(resource)})"  # noqa: S608  names and files of ours
        return _read(self._database, others)

    def _compare_rows(self, tables: Sequence[Table], resource: str) -> None:
        """Leave among the records that differ those with other rows."""
        self._compared.add(resource)
        signed_anew = _signed_anew(resource)
        self._database.execute(f"ALTER TABLE {resource} RENAME TO {signed_anew}")
        differing = [f"SELECT id FROM {signed_anew} WHERE gone", *map(self._differing_rows, tables)]  # noqa: S608  as above
        self._database.execute(
            f"CREATE TABLE {resource} AS SELECT id, gone FROM {signed_anew} WHERE id IN ({' UNION ALL '.join(differing)})"  # noqa: S608  as above
        )
        self._database.execute(f"DELETE FROM {signed_anew} WHERE id IN (SELECT id FROM {resource})")  # noqa: S608  as above

    def _differing_rows(self, table: Table) -> str:
        """A SELECT of the ids of records with other rows in a table, whatever their checksums and downloads are."""
        names = column_list(tuple(column.name for column in table.columns if column.made_from == "payload"))
        old, new = (
            f"(SELECT {quoted(table.key[0])} AS id, sum(CAST(hash({names}) AS HUGEINT)) AS rows FROM {self._file(side, table)} GROUP BY 1)"  # noqa: S608  as above
            for side in self._sides
        )
        return (
            f"SELECT coalesce(n.id, o.id) FROM {new} AS n FULL JOIN {old} AS o ON n.id = o.id "  # noqa: S608  as above
            "WHERE n.rows IS DISTINCT FROM o.rows"
        )

    def _has_nulls(self, snapshot: Snapshot, records: Table) -> bool:
        rows = f"SELECT count(*) - count(id) FROM {self._file(snapshot, records)}"  # noqa: S608  as above
        [(nulls,)] = self._database.execute(rows).fetchall()
        return bool(nulls)

    def _count(self, name: str) -> int:
        [(count,)] = self._database.execute(f"SELECT count(*) FROM {name}").fetchall()  # noqa: S608  a name of ours
        return int(count)

    def find_rows(self, table: Table) -> tuple[pa.RecordBatchReader, pa.RecordBatchReader]:
        """The new rows of these records, and the keys of those that end, with `gone` where no new row has this key."""
        resource, keys = _resource_of(table), column_list(table.key)
        ids = _DOWNLOADED.get(table.name, resource)
        columns = column_list(tuple(column.name for column in table.columns))
        database = self._database.cursor()
        old, new = (
            f"SELECT {columns} FROM {self._file(side, table)} WHERE {quoted(table.key[0])} IN (SELECT id FROM {ids})"  # noqa: S608  as above
            for side in self._sides
        )
        if table.name == STAGED[resource][0].name:  # the rows of all these records differ
            return _read(database, new), _read(database, f"SELECT id, gone FROM {resource}")  # noqa: S608  as above
        old_rows, new_rows = (quoted(f"{side} rows of {table.name}") for side in ("old", "new"))
        database.execute(f"CREATE TABLE {old_rows} AS {old}")
        database.execute(f"CREATE TABLE {new_rows} AS {new}")
        same = " AND ".join(f"n.{quoted(name)} = ended.{quoted(name)}" for name in table.key)
        ended = (
            f"SELECT {keys}, NOT EXISTS (SELECT 1 FROM {new_rows} AS n WHERE {same}) AS gone "  # noqa: S608  as above
            f"FROM (SELECT * FROM {old_rows} EXCEPT SELECT * FROM {new_rows}) AS ended"
        )
        return _read(database, f"SELECT * FROM {new_rows} EXCEPT SELECT * FROM {old_rows}"), _read(database, ended)  # noqa: S608  as above

    def _compare_downloads(self, table: Table, resource: str) -> None:
        """Find the records whose downloads had another result, too."""
        if all(side.manifest.files.not_fetched == side.manifest.files.count for side in self._sides):
            self._database.execute(f"CREATE VIEW {_DOWNLOADED[table.name]} AS SELECT id FROM {resource}")  # noqa: S608  as above
            return
        names = column_list((*table.key, *(column.name for column in table.columns if not column.made_from)))
        old, new = (
            f"(SELECT {quoted(table.key[0])} AS id, hash({names}) AS row FROM {self._file(side, table)})"  # noqa: S608  as above
            for side in self._sides
        )
        self._database.execute(
            f"CREATE TABLE {_DOWNLOADED[table.name]} AS SELECT id FROM {resource} UNION SELECT coalesce(n.id, o.id) FROM {new} AS n "  # noqa: S608  as above
            f"FULL JOIN {old} AS o ON n.id = o.id AND n.row = o.row WHERE n.id IS NULL OR o.id IS NULL"
        )

    def _file(self, snapshot: Snapshot, table: Table) -> str:
        facts = snapshot.manifest.tables[table.name]
        return read_parquet([escaped(snapshot.address_of(facts))], facts.key)


def _read(database: duckdb.DuckDBPyConnection, query: str) -> pa.RecordBatchReader:
    reader: pa.RecordBatchReader = database.cursor().sql(query).to_arrow_reader(BATCH_ROWS)
    return reader


class NotComparableError(Exception):
    """The files of two snapshots cannot be compared, for example because the older one is damaged."""


@contextmanager
def differences(data: DataFolder, before: Snapshot, after: Snapshot) -> Iterator[Differences]:
    """The differences between two snapshots of the data folder. Raises `NotComparableError`."""
    try:
        with data.duckdb("128MB", 2) as database:
            database.execute("SET TimeZone = 'UTC'")
            database.execute("SET parquet_metadata_cache = true")
            yield Differences(database, data, before, after)
    except StorageError as error:
        raise NotComparableError from error


def copy_changes(
    server: Server, schema: str, tables: Iterable[Table], found: Differences
) -> list[tuple[Table, CopyProgress]]:
    """Copy the new rows of some tables, and the keys of those that end, into two tables of the schema `schema` for each."""
    done = list[tuple[Table, CopyProgress]]()
    with server.copier() as cursor:
        for table in tables:
            rows, ended = found.find_rows(table)
            cursor.adbc_ingest(_ended(table), ended, mode="create", db_schema_name=schema)
            if (checksums := found.find_checksums(table)) is not None:
                cursor.adbc_ingest(_checksums(table), checksums, mode="create", db_schema_name=schema)
            cursor.execute(create_table(schema, table))
            done.append((table, copy_rows(cursor, schema, table, table.columns, rows)))
    return done


def _ended(table: Table) -> str:
    return f"{table.name}_ended"


def _checksums(table: Table) -> str:
    return f"{table.name}_checksums"


def _signed_anew(resource: str) -> str:
    """The table of ids whose checksum alone is another one: most often the addresses of files are."""
    return f"{resource}_signed_anew"


def write_changes(  # noqa: PLR0917  where, what, and between which snapshots
    session: Session, loading: str, main: str, changes: Sequence[Change], before: str, snapshot: Snapshot
) -> dict[str, int]:
    """Write the changed rows, in the caller's transaction. Returns table → rows that were written or removed.

    Rows are updated, not replaced, where a row of the same key is there, so that rows that refer to them stay valid.
    """
    name, written = snapshot.manifest.snapshot, {change.table.name: 0 for change in changes}
    there = columns_of(session, loading, [_checksums(change.table) for change in changes])
    for change in changes:
        if change.load.has_checksums:
            session.run(*_write_checksums(loading, main, change, before, name, found=_checksums(change.table) in there))
    plans = ("seqscan", "hashjoin", "mergejoin")  # without them the server finds each row by its key
    session.run(*(f"SET LOCAL enable_{plan} = off" for plan in plans))
    for change in changes:
        session.run(_end_rows(loading, main, change, name))
    for change in reversed(changes):  # rows that refer to others are removed before them
        written[change.table.name] += session.count(_remove_rows(loading, change))
    for change in changes:
        written[change.table.name] += session.count(_write_rows(loading, change, name))
    session.run(*(f"SET LOCAL enable_{plan} = DEFAULT" for plan in plans))
    for change in changes:
        facts = snapshot.manifest.tables[change.table.name]
        values = ", ".join(map(literal, (change.table.name, change.load.name, name)))
        rules, sha256 = literal(change.load.rules), literal(facts.sha256)
        session.run(f"INSERT INTO {quoted(main, LOADED_TABLES)} VALUES ({values}, true, {rules}, {sha256})")  # noqa: S608  quoted
    return written


def _write_checksums(
    loading: str, main: str, change: Change, before: str, snapshot: str, *, found: bool
) -> Iterator[str]:
    """The statements that write the checksums that no row has: those found, and for other records those of the night before."""
    into = f"INSERT INTO {quoted(main, change.load.checksums)} SELECT {literal(snapshot)}, c.id, c.sha256 FROM"
    others = [_ended(change.table), *([_checksums(change.table)] if found else [])]
    still = "".join(f" AND NOT EXISTS (SELECT FROM {quoted(loading, name)} AS o WHERE o.id = c.id)" for name in others)
    yield f"{into} {quoted(main, change.load.checksums)} AS c WHERE c.snapshot = {literal(before)}{still}"
    if found:
        yield f"{into} {quoted(loading, _checksums(change.table))} AS c"


def _is_ended(loading: str, table: Table) -> str:
    """What follows FROM, or USING, for the rows of `r` that end."""
    same = " AND ".join(f"e.{quoted(name)} = r.{quoted(name)}" for name in table.key)
    return f"{quoted(loading, _ended(table))} AS e WHERE {same}"


def _end_rows(loading: str, main: str, change: Change, snapshot: str) -> str:
    """Copies the rows that are no longer there, or are others now."""
    table, names = change.table, (*(column.name for column in change.table.columns), "tenant", "snapshot")
    columns, own = column_list(names), ", ".join(f"r.{quoted(name)}" for name in names)
    return (
        f"INSERT INTO {quoted(main, change.load.past)} ({columns}, until) SELECT {own}, {literal(snapshot)} "  # noqa: S608  quoted
        f"FROM {change.relation} AS r, {_is_ended(loading, table)}"
    )


def _remove_rows(loading: str, change: Change) -> str:
    return f"DELETE FROM {change.relation} AS r USING {_is_ended(loading, change.table)} AND e.gone"  # noqa: S608  quoted


def _write_rows(loading: str, change: Change, snapshot: str) -> str:
    table = change.table
    names = [column.name for column in table.columns]
    others = [*(name for name in names if name not in table.key), "snapshot"]
    updates = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in others)
    return (
        f'INSERT INTO {change.relation} ({column_list(tuple(names))}, "snapshot") '  # noqa: S608  quoted
        f"SELECT {column_list(tuple(names))}, {literal(snapshot)} FROM {quoted(loading, table.name)} "
        f"ON CONFLICT ({column_list(table.key)}) DO UPDATE SET {updates}"
    )
