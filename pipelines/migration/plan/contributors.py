"""Contributors of publications, where the users of both libraries are read: which user of the target each of them is, or will be.

service-api.md: "contributor, category, organization references | id"; "when an `id` does not exist in the account, the response is 404".
An id counts in its own library only (trap A15). Organizations cannot be led over: no endpoint lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from pipelines.migration.model.comparable import CONTRIBUTOR, RECORDS, STEP, ComparableLibrary
from pipelines.migration.model.resource_types import USERS
from pipelines.records.batches import Row, table_batch, transposed
from pipelines.records.tables.description import Column, Table
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import exactly, literal, table_writer

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from pipelines.migration.plan.match_store import MatchStore

_NUMBER = pa.int64()
CONTRIBUTORS = Table(
    "contributors",
    "One row for each user to whom publications of the source refer.",
    ("source_id",),
    (
        Column("source_id", _NUMBER, "The user in the source.", required=True),
        Column("target_id", _NUMBER, "The one in the target; empty where there is none yet."),
        Column("is_there", pa.bool_(), "Whether there is one, or will be.", required=True),
    ),
)

UNKNOWN = '{"id":null}'
"""How a contributor is compared whom the target does not know: whatever stands there is left."""


def note_contributors(side: ComparableLibrary, room: MatchStore) -> None:
    """Keep beside the publications of the source what their contributors become; `room` knows the users."""
    records, path = literal(exactly(side.path(RECORDS))), side.path(CONTRIBUTORS)
    with storage_errors(path), duckdb.connect() as database, table_writer(path, CONTRIBUTORS) as writer:
        found = database.execute(
            f"SELECT DISTINCT CAST({CONTRIBUTOR} ->> '$.id' AS BIGINT) FROM read_parquet({records}) WHERE {CONTRIBUTOR} IS NOT NULL"  # noqa: S608  an address of ours
        )
        while ids := found.fetchmany(STEP):
            known = [(number, room.became(USERS, number)) for (number,) in ids]
            rows: list[Row] = [(number, target_id, is_there) for number, (is_there, target_id) in known]
            writer.write(table_batch(CONTRIBUTORS, transposed(rows, CONTRIBUTORS)))


def show_contributors(
    database: DuckDBPyConnection, side: ComparableLibrary, *, became: Callable[[str, int], int | None] | None = None
) -> Sequence[str]:
    """Let the view `source` of a database show contributors as those of the target, where they are known; the references that are.

    One whose account is still to be made is `{"source": id}`. `became`: what has been made since.
    """
    path = side.path(CONTRIBUTORS)
    if not path.exists():
        return ()
    database.execute(f"CREATE TABLE contributors AS FROM read_parquet({literal(exactly(path))})")
    if became is not None:
        waiting = database.execute("SELECT source_id FROM contributors WHERE is_there AND target_id IS NULL").fetchall()
        made = [(became(USERS, number), number) for (number,) in waiting]
        if made:
            database.executemany("UPDATE contributors SET target_id = ? WHERE source_id = ?", made)
    database.execute(f"""
        CREATE OR REPLACE TEMP VIEW source AS
        SELECT r.* REPLACE (CASE
            WHEN r.{CONTRIBUTOR} IS NULL THEN NULL
            WHEN c.target_id IS NOT NULL THEN '{{"id":' || c.target_id || '}}'
            WHEN c.is_there THEN '{{"source":' || c.source_id || '}}'
            ELSE '{UNKNOWN}'
        END AS {CONTRIBUTOR})
        FROM read_parquet({literal(exactly(side.path(RECORDS)))}) AS r
        LEFT JOIN contributors AS c ON c.source_id = CAST(r.{CONTRIBUTOR} ->> '$.id' AS BIGINT)
    """)  # noqa: S608  names and addresses of ours
    return (CONTRIBUTOR,)
