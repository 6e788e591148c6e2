"""Maps the contributors of publications to users of the target, where the users of both libraries are read.

The service refers to a contributor by its id and answers 404 where the account has no such id (service.md#references). An id is valid in
its own library only. Organizations cannot be mapped: no endpoint lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.migration.model.comparable import CONTRIBUTOR, RECORDS, STEP, ComparableLibrary
from pipelines.migration.model.resource_types import USERS
from pipelines.records.batches import batch_of_columns
from pipelines.records.tables.description import Column, Table
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import connect_duckdb, escaped, literal, table_writer

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from pipelines.migration.plan.match_store import MatchStore

_NUMBER = pa.int64()
CONTRIBUTORS = Table(
    "contributors",
    "One row for each user that is a contributor of publications of the source.",
    ("source_id",),
    (
        Column("source_id", _NUMBER, "The user in the source.", required=True),
        Column("target_id", _NUMBER, "The user in the target; empty where there is none yet."),
        Column("is_there", pa.bool_(), "Whether the target has the user, or will have it.", required=True),
    ),
)

UNKNOWN = '{"id":null}'
"""The compared value of a contributor that the target does not have: the target keeps its own."""


def write_contributors(side: ComparableLibrary, users: MatchStore) -> None:
    """Write the users of the target that the contributors of the source are, in a file beside its publications."""
    records, path = literal(escaped(side.path(RECORDS))), side.path(CONTRIBUTORS)
    with storage_errors(path), connect_duckdb() as database, table_writer(path, CONTRIBUTORS) as writer:
        found = database.execute(
            f"SELECT DISTINCT CAST({CONTRIBUTOR} ->> '$.id' AS BIGINT) FROM read_parquet({records}) WHERE {CONTRIBUTOR} IS NOT NULL"  # noqa: S608  our own address
        )
        while ids := found.fetchmany(STEP):
            source_ids = [source_id for (source_id,) in ids]
            is_there, target_ids = zip(*(users.target_of(USERS, source_id) for source_id in source_ids), strict=True)
            columns = {"source_id": source_ids, "target_id": target_ids, "is_there": is_there}
            writer.write(batch_of_columns(CONTRIBUTORS, columns))


def map_contributors(
    database: DuckDBPyConnection,
    side: ComparableLibrary,
    records: str,
    *,
    find_target: Callable[[str, int], int | None] | None = None,
) -> Sequence[str]:
    """Replace the view `source` by one of these records in which contributors are users of the target; return the fields that are mapped.

    A contributor whose account is still to be created is `{"source": id}`. `find_target`: finds an account that has been created since.
    """
    path = side.path(CONTRIBUTORS)
    if not path.exists():
        return ()
    database.execute(f"CREATE TABLE contributors AS FROM read_parquet({literal(escaped(path))})")
    if find_target is not None:
        waiting = database.execute("SELECT source_id FROM contributors WHERE is_there AND target_id IS NULL").fetchall()
        created = [(find_target(USERS, source_id), source_id) for (source_id,) in waiting]
        if created:
            database.executemany("UPDATE contributors SET target_id = ? WHERE source_id = ?", created)
    database.execute(f"""
        CREATE OR REPLACE TEMP VIEW source AS
        SELECT r.* REPLACE (CASE
            WHEN r.{CONTRIBUTOR} IS NULL THEN NULL
            WHEN c.target_id IS NOT NULL THEN '{{"id":' || c.target_id || '}}'
            WHEN c.is_there THEN '{{"source":' || c.source_id || '}}'
            ELSE '{UNKNOWN}'
        END AS {CONTRIBUTOR})
        FROM {records} AS r
        LEFT JOIN contributors AS c ON c.source_id = CAST(r.{CONTRIBUTOR} ->> '$.id' AS BIGINT)
    """)  # noqa: S608  our own names and addresses
    return (CONTRIBUTOR,)
