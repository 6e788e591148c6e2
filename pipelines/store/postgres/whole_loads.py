"""Which rows a library's schema has: whole loads, and the changes of later nights, which are written into their tables.

A whole load fills new tables. The next night then writes only the rows that changed: those that end go from the table into one beside it,
`..._past`, with the snapshot from which they are no longer there. So each night is there in full, and costs the space of its changes.
A record's checksum may be another one every night although nothing else is, because a service signs the addresses of files anew. Such
checksums are in the table `..._checksums`. `loaded_tables` says which snapshots these are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pipelines.errors import StorageError
from pipelines.records.tables.registry import TABLES
from pipelines.records.tables.shared_columns import SHA256
from pipelines.store.parquet import literal, quoted
from pipelines.store.postgres.definitions import fitting_name, load_name
from pipelines.store.postgres.schemas import columns_of
from pipelines.store.postgres.server import Session

LOADED_TABLES = "loaded_tables"
"""The table of these facts, in the schema of a library."""

ONE_SNAPSHOT = "one_snapshot"
"""The constraint of a table that has one snapshot, and will have no other."""


@dataclass(frozen=True)
class WholeLoad:
    """A whole load of one table, with the changes of later snapshots."""

    table: str
    name: str
    """The snapshot that was loaded whole; with a number, where another load has that name."""
    snapshots: tuple[str, ...]
    """The snapshots whose rows it has, oldest first."""
    last: str
    """The snapshot that the table itself has the rows of. If the data folder lacks it, it is not one of `snapshots`."""
    rules: str = ""
    """Name of the rules of these rows (pipelines/records/rules.py); empty if no changes may be written into the table."""
    sha256: str = ""
    """SHA-256 of the file of `last`."""
    is_closed: bool = False
    """Whether it has the constraint that tells the planner that it has one snapshot alone. It then needs no table beside it."""

    @property
    def is_single(self) -> bool:
        """Whether no changes were written into it: its last snapshot is that of its name."""
        return self.name.partition("_")[0] == self.last

    @property
    def has_checksums(self) -> bool:
        """Whether the table `checksums` is beside it: its rows have the checksum of a record."""
        return any(column.made_from == SHA256.made_from for column in TABLES[self.table].columns)

    @property
    def relation(self) -> str:
        """The name of its table, which has the load's name in it."""
        return load_name(self.table, self.name)

    @property
    def past(self) -> str:
        """The table of the rows that have ended."""
        return fitting_name(f"{self.relation}_past")

    @property
    def checksums(self) -> str:
        """The table of the checksums that are others than in the rows: snapshot, record, SHA-256."""
        return fitting_name(f"{self.relation}_checksums")

    @property
    def beside(self) -> tuple[str, ...]:
        """The tables beside its table."""
        return (self.past, self.checksums) if self.has_checksums else (self.past,)


Loads = Mapping[str, Collection[WholeLoad]]
"""Table → its whole loads."""


def newest_snapshot(loads: Iterable[WholeLoad]) -> str:
    """The newest snapshot of these loads; empty without any."""
    return max((snapshot for load in loads for snapshot in load.snapshots), default="")


def read_loads(session: Session, schema: str) -> dict[str, list[WholeLoad]]:
    """The whole loads in a library's schema. Raises `StorageError` for tables of another format."""
    found: dict[str, list[WholeLoad]] = {}
    if LOADED_TABLES in columns_of(session, schema, [LOADED_TABLES]):
        rows = session.rows(
            f"SELECT table_name, load, snapshot, shown, rules, sha256 FROM {quoted(schema, LOADED_TABLES)} ORDER BY 1, 2, 3"  # noqa: S608  quoted
        )
        closed = _closed_tables(session, schema)
        grouped: dict[tuple[str, str], list[tuple[str, bool, str, str]]] = {}
        for table, name, *facts in rows:
            grouped.setdefault((table, name), []).append((facts[0], facts[1], facts[2], facts[3]))
        for (table, name), facts in grouped.items():
            shown = tuple(snapshot for snapshot, is_shown, _, _ in facts if is_shown)
            last, _, rules, sha256 = facts[-1]
            load = WholeLoad(table, name, shown, last, rules, sha256)
            found.setdefault(table, []).append(replace(load, is_closed=load.relation in closed))
    _check_format(session, schema, [load for loads in found.values() for load in loads])
    return found


def _closed_tables(session: Session, schema: str) -> set[str]:
    """The tables whose constraint on their snapshot is valid."""
    rows = session.rows(
        """SELECT relname FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
           WHERE relnamespace = %s::text::regnamespace AND conname = %s AND convalidated""",
        quoted(schema),
        ONE_SNAPSHOT,
    )
    return {relation for (relation,) in rows}


def close_load(schema: str, load: WholeLoad) -> str:
    """The statement that adds the constraint. It reads no row; `validate_closed` does."""
    drop = f"DROP CONSTRAINT IF EXISTS {ONE_SNAPSHOT}"  # of a load that was interrupted before it was valid
    add = f"ADD CONSTRAINT {ONE_SNAPSHOT} CHECK (snapshot = {literal(load.last)}) NOT VALID"
    return f"ALTER TABLE {quoted(schema, load.relation)} {drop}, {add}"


def validate_closed(session: Session, schema: str, load: WholeLoad) -> None:
    """Check the constraint on every row, beside all readers."""
    session.run(f"ALTER TABLE {quoted(schema, load.relation)} VALIDATE CONSTRAINT {ONE_SNAPSHOT}")


def _check_format(session: Session, schema: str, loads: Collection[WholeLoad]) -> None:
    """Earlier formats had a partition for each snapshot, or no tables of checksums."""
    needed = {load.checksums for load in loads if load.has_checksums and not load.is_closed}
    partitioned = session.rows(
        "SELECT relname FROM pg_class WHERE relkind = 'p' AND relnamespace = %s::text::regnamespace", quoted(schema)
    )
    if partitioned or needed - columns_of(session, schema, needed).keys():
        raise StorageError(
            f"The tables in the schema {schema} have the format of an earlier Bookferry. Drop it (DROP SCHEMA {quoted(schema)} CASCADE) "
            "and run `bookferry stage --history`, which loads every snapshot again."
        )


def loads_afterwards(
    loads: Loads, fresh: Collection[WholeLoad], gone: Collection[str], kept: Collection[WholeLoad] = ()
) -> dict[str, list[WholeLoad]]:
    """The loads after `fresh` ones, which replace their snapshots in the others. Only those in `kept` keep snapshots that are `gone`."""
    replaced = {load.table: load.last for load in fresh}
    after: dict[str, list[WholeLoad]] = {}
    for table, there in loads.items():
        for load in there:
            left = [one for one in load.snapshots if one != replaced.get(table)]
            snapshots = tuple(one for one in left if load in kept or one not in gone)
            if snapshots:
                after.setdefault(table, []).append(replace(load, snapshots=snapshots))
    for load in fresh:
        others = after.setdefault(load.table, [])
        names = {other.name for other in others}
        number = next(number for number in range(1, len(names) + 2) if _numbered(load.name, number) not in names)
        others.append(replace(load, name=_numbered(load.name, number)))
    return after


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}_{number}"


def create_loaded_tables(session: Session, schema: str, loads: Loads) -> None:
    """Create and fill the table of the facts."""
    name = quoted(schema, LOADED_TABLES)
    comment = (
        "Which snapshots the tables have: a row for each table, load and snapshot. A load begins with all rows of a snapshot; later "
        "snapshots of it are changes of these."
    )
    session.run(
        f'CREATE TABLE {name} (table_name text COLLATE "C", load text COLLATE "C", snapshot text COLLATE "C", shown boolean NOT NULL, '
        f"rules text NOT NULL, sha256 text NOT NULL, PRIMARY KEY (table_name, load, snapshot))",
        f"COMMENT ON TABLE {name} IS {literal(comment)}",
        *(
            add_snapshot(schema, load, snapshot)
            for there in loads.values()
            for load in there
            for snapshot in sorted({*load.snapshots, load.last})
        ),
    )


def add_snapshot(schema: str, load: WholeLoad, snapshot: str) -> str:
    """The statement that notes a snapshot of a load."""
    rules, sha256 = (load.rules, load.sha256) if snapshot == load.last else ("", "")
    shown = "true" if snapshot in load.snapshots else "false"
    values = ", ".join(map(literal, (load.table, load.name, snapshot)))
    return (
        f"INSERT INTO {quoted(schema, LOADED_TABLES)} VALUES ({values}, {shown}, {literal(rules)}, {literal(sha256)})"  # noqa: S608  quoted
    )


def forget_rules(session: Session, schema: str, loads: Iterable[WholeLoad]) -> None:
    """Note that no changes may be written into the tables of these loads."""
    for load in loads:
        session.run(f"UPDATE {quoted(schema, LOADED_TABLES)} AS n SET rules = '' WHERE {_is_of(load)}")  # noqa: S608  quoted


def create_beside(schema: str, load: WholeLoad, record: str) -> Iterator[str]:
    """The statements that create the tables beside a new table. `record`: the column of a record's id."""
    past = quoted(schema, load.past)
    yield f"CREATE TABLE {past} AS SELECT *, NULL::text AS until FROM {quoted(schema, load.table)} WITH NO DATA"  # noqa: S608  quoted
    yield f"CREATE INDEX ON {past} ({quoted(record)})"
    comment = f"Rows of {load.table} that have ended: `snapshot` is the first snapshot with the row, `until` the first without it."
    yield f"COMMENT ON TABLE {past} IS {literal(comment)}"
    if load.has_checksums:
        checksums = quoted(schema, load.checksums)
        columns = 'snapshot text COLLATE "C", id bigint, sha256 text NOT NULL, PRIMARY KEY (snapshot, id)'
        yield f"CREATE TABLE {checksums} ({columns})"
        comment = f"Checksums of records in later snapshots, where the one in the row of {load.table} is of an earlier snapshot."
        yield f"COMMENT ON TABLE {checksums} IS {literal(comment)}"


def hide_snapshots(session: Session, schema: str, loads: Loads, gone: Collection[str]) -> None:
    """Remove snapshots that the data folder has no more, and the rows that no other one has."""
    for load in (load for there in loads.values() for load in there):
        hidden = [snapshot for snapshot in load.snapshots if snapshot in gone]
        if hidden:
            names = ", ".join(map(literal, hidden))
            facts = quoted(schema, LOADED_TABLES)
            session.run(f"UPDATE {facts} AS n SET shown = false WHERE {_is_of(load)} AND snapshot IN ({names})")  # noqa: S608  quoted
            remove_unseen_rows(session, schema, load)


def remove_unseen_rows(session: Session, schema: str, load: WholeLoad) -> None:
    """Remove the ended rows and the checksums that no snapshot has any more."""
    session.run(
        f"DELETE FROM {quoted(schema, load.past)} AS r WHERE NOT EXISTS (SELECT FROM {shown_snapshots(schema, load)} "  # noqa: S608  quoted
        "AND r.snapshot <= n.snapshot AND n.snapshot < r.until)"
    )
    if load.has_checksums:
        session.run(
            f"DELETE FROM {quoted(schema, load.checksums)} AS c WHERE NOT EXISTS "  # noqa: S608  quoted
            f"(SELECT FROM {shown_snapshots(schema, load)} AND n.snapshot = c.snapshot)"
        )


def shown_snapshots(schema: str, load: WholeLoad, joined: str = "") -> str:
    """The snapshots of a load, as the end of a SELECT to which conditions can be added. Their alias is `n`. `joined`: more of FROM."""
    return f"{quoted(schema, LOADED_TABLES)} AS n{joined} WHERE {_is_of(load)} AND n.shown"


def _is_of(load: WholeLoad) -> str:
    """The condition on the rows `n` of `loaded_tables` that are about a load."""
    return f"n.table_name = {literal(load.table)} AND n.load = {literal(load.name)}"
