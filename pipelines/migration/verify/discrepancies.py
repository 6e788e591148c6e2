"""Holds the publications of a plan against a later reading of the target: what is missing, what differs, what is there twice.

Set against set in a database beside the two sides: every field of every record, and no record by itself in memory (I11).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import duckdb
import pyarrow as pa

from pipelines.migration.model.comparable import CONTRIBUTOR, STEP, ComparableLibrary
from pipelines.migration.model.journal import CREATE as CREATED
from pipelines.migration.model.journal import DONE, INTENDED, UNDONE, Journal
from pipelines.migration.model.journal import PATCH as PATCHED
from pipelines.migration.model.plan import CREATE, PATCH, ROWS, UNCHANGED, Plan
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.plan.contributors import show_contributors
from pipelines.records.batches import Row, table_batch, transposed
from pipelines.records.forms import WRITTEN
from pipelines.records.publications import REFERENCES
from pipelines.records.tables import Column, Table
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import exactly, literal, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MISSING, DIFFERING, DUPLICATED, UNREAD = "missing", "differing", "duplicated", "unread"
"""Problems. Unread: the bytes of a file could not be fetched, so that nothing is proved of them."""

FILES, COVER = "files", "cover"
"""What is named as the field where the problem is a file's."""

_TEXT, _NUMBER = pa.string(), pa.int64()
FINDINGS = Table(
    "findings",
    "One row for each difference between a plan and what the target holds.",
    (),
    (
        Column("problem", _TEXT, "missing, differing, duplicated or unread.", required=True),
        Column("source_id", _NUMBER, "The record in the source."),
        Column("target_id", _NUMBER, "The record in the target."),
        Column("field", _TEXT, "The field, or `files` or `cover`; empty where it is the record."),
        Column("wanted", _TEXT, "What should be there, as it is compared."),
        Column("found", _TEXT, "What is there."),
        Column("why", _TEXT, "What is known of how that came about.", required=True),
    ),
)
_ENTRY = ("resource", "source_id", "kind", "part", "state", "target_id", "asset_id", "held", "message")
ENTRIES = Table(
    "entries",
    "What the journal says of a plan.",
    (),
    tuple(Column(name, _NUMBER if name.endswith("_id") else _TEXT, "As in the journal.") for name in _ENTRY),
)
MADE = Table(
    "made",
    "What any plan made in the target.",
    (),
    (Column("target_id", _NUMBER, "The record."), Column("asset_id", _NUMBER, "The file; empty for the record.")),
)


_LED = f"""
    CREATE OR REPLACE TEMP VIEW planned AS
    SELECT p.* REPLACE (CASE
        WHEN json_exists(p.references, '$.{CONTRIBUTOR}')
            THEN json_merge_patch(coalesce(p.expected, '{{{{}}}}'), json_object('{CONTRIBUTOR}', md5_number(s.{CONTRIBUTOR})::VARCHAR))
        ELSE p.expected
    END AS expected)
    FROM {{rows}} AS p
    LEFT JOIN source AS s ON s.id = p.source_id
    WHERE p.resource = '{PUBLICATIONS}'
"""  # noqa: S608  names of ours
"""What is expected of contributors whose accounts were still to be made is known by now."""


class Discrepancy(NamedTuple):
    """A row of `FINDINGS`."""

    problem: str
    source_id: int | None
    target_id: int | None
    field: str | None
    wanted: str | None
    found: str | None
    why: str


class Discrepancies:
    """The differences found so far, in the table `findings` of a database. Several threads may add."""

    def __init__(self, database: DuckDBPyConnection) -> None:
        self.database = database
        self._writer = database.cursor()  # beside what is being read
        self._waiting: list[Row] = []
        self._lock = threading.Lock()

    def add(self, found: Iterable[Discrepancy]) -> None:
        """Take some in."""
        with self._lock:
            self._waiting += found
            if len(self._waiting) >= STEP:
                self._flush()

    def _flush(self) -> None:
        rows, self._waiting = self._waiting, []
        fill(self._writer, FINDINGS, [table_batch(FINDINGS, transposed(rows, FINDINGS))])

    def counts(self) -> dict[tuple[str, bool], int]:
        """(problem, whether it is a file's) → records, or files. A record that differs in several fields counts once."""
        with self._lock:
            self._flush()
        rows = self.database.execute(
            "SELECT problem, is_file, CASE WHEN is_file OR problem <> ? THEN count(*) ELSE count(DISTINCT source_id) END "
            "FROM (SELECT *, coalesce(list_contains(?, field), false) AS is_file FROM findings) GROUP BY problem, is_file",
            [DIFFERING, [FILES, COVER]],
        ).fetchall()
        return {(problem, is_file): count for problem, is_file, count in rows}

    def compared(self) -> int:
        """Records that should be in the target."""
        (count,) = self.database.cursor().execute("SELECT count(*) FROM checked").fetchone() or (0,)
        return int(count)

    def told(self) -> Iterator[tuple[Discrepancy, str | None]]:
        """Each with the title of its record, in the order of the source's ids."""
        found = self.database.execute(
            "SELECT f.*, p.title FROM findings AS f LEFT JOIN planned AS p ON p.source_id = f.source_id "
            "ORDER BY f.source_id NULLS LAST, f.field NULLS FIRST, f.target_id, f.wanted"
        )
        while rows := found.fetchmany(STEP):
            for *row, title in rows:
                yield Discrepancy(*row), title


@contextmanager
def compare_with_target(plan: Plan, now: ComparableLibrary, room: Path, journal: Journal) -> Iterator[Discrepancies]:
    """Compares the records; a database in `room` for the length of the block.

    It has the tables `checked` (source_id, action, target_id, state, message, is_there, fields: one row for each record that should be
    in the target), `entries`, `made`, and the views `planned`, `source`, `before` (the target as it was planned from) and `target`.
    """
    limits: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": "1200MB",
        "threads": 2,
        "preserve_insertion_order": False,
        "temp_directory": str(room / "spilled"),
    }
    with storage_errors(room), duckdb.connect(str(room / "comparison.duckdb"), config=limits) as database:
        for name, side in (("source", plan.source), ("before", plan.target), ("target", now)):
            for view in side.views(name):
                database.execute(view)
        led = show_contributors(database, plan.source, became=journal.became)
        rows = f"read_parquet({literal(exactly(plan.path(ROWS)))})"
        database.execute(f"CREATE TEMP VIEW planned AS FROM {rows} WHERE resource = '{PUBLICATIONS}'")
        if led:
            database.execute(_LED.format(rows=rows))
        for table, batches in (
            (FINDINGS, ()),
            (ENTRIES, _batches(ENTRIES, journal.told(plan.name, _ENTRY))),
            (MADE, _batches(MADE, journal.made(PUBLICATIONS))),
        ):
            database.register("given", pa.RecordBatchReader.from_batches(table.schema, iter(batches)))
            database.execute(f"CREATE TABLE {table.name} AS FROM given")
            database.unregister("given")
        _check(database, REFERENCES if plan.facts.same_library else led)
        _find_differing(database)
        _find_duplicated(database)
        _find_missing(database)
        yield Discrepancies(database)


def fill(database: DuckDBPyConnection, table: Table, batches: Iterable[pa.RecordBatch]) -> None:
    """Append to a table."""
    database.register("given", pa.RecordBatchReader.from_batches(table.schema, iter(batches)))
    database.execute(f"INSERT INTO {table.name} FROM given")
    database.unregister("given")


def _batches(table: Table, rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == STEP:
            yield table_batch(table, transposed(batch, table))
            batch = []
    yield table_batch(table, transposed(batch, table))


def _check(database: DuckDBPyConnection, references: Sequence[str]) -> None:
    """What should be there, where, and in which fields it is not what was planned; a field that a row does not expect is not compared.

    A record that holds all that the source's does is what was planned; digests, which take long to write as text, are for the others.
    """
    told = ("content", *references)
    same = " AND ".join(f"s.{quoted(name)} IS NOT DISTINCT FROM t.{quoted(name)}" for name in told)
    columns = ", ".join(map(quoted, ("id", *told)))
    paths = ", ".join(literal(f"$.{name}") for name in WRITTEN)
    differ = ", ".join(
        f"CASE WHEN wanted[{place}]::VARCHAR <> coalesce('\"' || md5_number({quoted(name)}) || '\"', 'null') THEN {literal(name)} END"
        for place, name in enumerate(WRITTEN, 1)
    )
    database.execute(f"""
        CREATE TABLE placed AS
        SELECT p.*, t.id IS NOT NULL AS is_there, s.id IS NOT NULL AND {same} AS is_same
        FROM (
            SELECT
                p.source_id, p.action, e.state, e.message,
                CASE WHEN p.action <> '{CREATE}' THEN p.target_id WHEN e.state = '{DONE}' THEN e.target_id END AS target_id
            FROM planned AS p
            LEFT JOIN entries AS e ON e.resource = p.resource AND e.source_id = p.source_id
                AND e.kind = CASE p.action WHEN '{CREATE}' THEN '{CREATED}' ELSE '{PATCHED}' END
            WHERE p.action IN ('{CREATE}', '{PATCH}', '{UNCHANGED}')
        ) AS p
        LEFT JOIN (SELECT {columns} FROM source) AS s ON s.id = p.source_id
        LEFT JOIN (SELECT {columns} FROM target) AS t ON t.id = p.target_id;

        CREATE TABLE other AS
        SELECT source_id, [one for one in [{differ}] if one IS NOT NULL] AS fields
        FROM (
            SELECT p.source_id, json_extract(r.expected, [{paths}]) AS wanted, t.*
            FROM (FROM placed WHERE is_there AND NOT is_same) AS p
            JOIN planned AS r ON r.source_id = p.source_id
            JOIN target AS t ON t.id = p.target_id
        );

        CREATE TABLE checked AS
        SELECT p.* EXCLUDE is_same, coalesce(o.fields, []) AS fields
        FROM placed AS p
        LEFT JOIN other AS o ON o.source_id = p.source_id;
    """)  # noqa: S608  names of ours


def _find_differing(database: DuckDBPyConnection) -> None:
    """Each field with the text that was wanted, which the source has, or, where its value was left, the target as it was."""

    def of(side: str) -> str:
        return f"CASE field {' '.join(f'WHEN {literal(name)} THEN {side}.{quoted(name)}' for name in WRITTEN)} END"

    database.execute(f"""
        INSERT INTO findings
        SELECT
            '{DIFFERING}', source_id, target_id, field,
            CASE wanted WHEN md5_number(ours)::VARCHAR THEN ours WHEN md5_number(old)::VARCHAR THEN old END,
            found,
            CASE
                WHEN action = '{PATCH}' AND wanted IS NOT DISTINCT FROM md5_number(ours)::VARCHAR
                    AND wanted IS DISTINCT FROM md5_number(old)::VARCHAR AND state IS DISTINCT FROM '{DONE}'
                    THEN coalesce(message, 'it was not changed yet')
                WHEN state = '{DONE}' AND held ->> field IS NOT DISTINCT FROM md5_number(found)::VARCHAR
                    AND list_contains(json_keys(held), field)
                    THEN 'the service answered so when it was written'
                ELSE 'changed since it was written, or by the service'
            END
        FROM (
            SELECT
                c.*, p.expected ->> c.field AS wanted, e.held,
                {of("s")} AS ours, {of("b")} AS old, {of("t")} AS found
            FROM (SELECT * EXCLUDE fields, unnest(fields) AS field FROM checked WHERE len(fields) > 0) AS c
            JOIN planned AS p ON p.source_id = c.source_id
            JOIN target AS t ON t.id = c.target_id
            LEFT JOIN source AS s ON s.id = c.source_id
            LEFT JOIN before AS b ON b.id = c.target_id
            LEFT JOIN entries AS e ON e.resource = '{PUBLICATIONS}' AND e.source_id = c.source_id
                AND e.kind = CASE c.action WHEN '{CREATE}' THEN '{CREATED}' ELSE '{PATCHED}' END
        )
    """)  # noqa: S608


def _find_duplicated(database: DuckDBPyConnection) -> None:
    """Records that came since and that no plan made, and yet are one of the plan; and two of the plan that became one."""
    same = " UNION ALL ".join(
        f"SELECT n.id, s.id AS source_id, {rank} AS rank, {how} AS how FROM strays AS n JOIN {source} AS s ON {condition}"  # noqa: S608
        for rank, how, source, condition in (
            (
                1,
                "'as its ' || s.type || ' ' || s.value || ' says'",
                "source_keys",
                "s.type = n.type AND s.value = n.value",
            ),
            (2, "'word for word'", "source", "s.content = n.content"),
            (3, "'by title, year and first author'", "source", "s.fingerprint = n.fingerprint"),
        )
    )
    database.execute(f"""
        CREATE TABLE strays AS
        SELECT t.id, t.content, t.fingerprint, k.type, k.value
        FROM target AS t
        ANTI JOIN before AS b ON b.id = t.id
        ANTI JOIN made AS m ON m.target_id = t.id
        LEFT JOIN target_keys AS k ON k.id = t.id;

        CREATE TABLE doubles AS
        SELECT id, source_id, is_there, target_id, how
        FROM (SELECT s.*, c.is_there, c.target_id FROM ({same}) AS s JOIN checked AS c ON c.source_id = s.source_id)
        QUALIFY row_number() OVER (PARTITION BY id ORDER BY is_there, rank, source_id, how) = 1;

        INSERT INTO findings
        SELECT
            '{DUPLICATED}', source_id, id, NULL, NULL, NULL,
            'nobody knows who made it, and it is the same as ' || target_id || ', ' || how
        FROM doubles
        WHERE is_there;

        INSERT INTO findings
        SELECT '{DUPLICATED}', source_id, target_id, NULL, NULL, NULL, 'publication ' || first || ' of the source became the same record'
        FROM (SELECT *, min(source_id) OVER (PARTITION BY target_id) AS first FROM checked WHERE target_id IS NOT NULL)
        WHERE source_id <> first;
    """)  # noqa: S608


def _find_missing(database: DuckDBPyConnection) -> None:
    """A stray that is what is missing belongs to it, and is no duplicate."""
    database.execute(f"""
        INSERT INTO findings
        SELECT '{MISSING}', c.source_id, c.target_id, NULL, NULL, NULL, CASE
            WHEN action <> '{CREATE}' THEN 'it was there when the plan was made, and is not there any more'
            WHEN c.target_id IS NOT NULL THEN 'it was created, and is not there any more'
            WHEN state IS NULL THEN 'it was not created yet'
            WHEN state = '{UNDONE}' THEN 'it was created, and taken back'
            WHEN state = '{INTENDED}' THEN 'the answer to its creation was never seen; applying the plan again looks it up'
            ELSE coalesce(message, state)
        END || coalesce('. Nobody knows who made ' || d.ids || ', which may be it', '')
        FROM checked AS c
        LEFT JOIN (SELECT source_id, string_agg(id, ', ' ORDER BY id) AS ids FROM doubles WHERE NOT is_there GROUP BY ALL) AS d
            ON d.source_id = c.source_id
        WHERE NOT c.is_there
    """)  # noqa: S608
