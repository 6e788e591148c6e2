"""The benchmark is fair: every peer loads the same rows into Postgres, and has the same keys and indexes afterwards."""

from __future__ import annotations

import pytest

from benchmarks.libraries import FIRST_NIGHT, make_snapshot, night
from benchmarks.peers.postgres_loads import PEERS
from pipelines.store.snapshots.snapshots import DataFolder
from tests.store.postgres.conftest import Ask

INDEXES = """
    SELECT replace(tablename, '_rows', ''),
        string_agg(regexp_replace(indexdef, '^.* USING ', ''), '; ' ORDER BY indexdef COLLATE "C")
    FROM pg_indexes
    WHERE schemaname = %s AND tablename LIKE 'publication%%' AND tablename !~ '_past$' GROUP BY 1 ORDER BY 1"""


@pytest.mark.long
@pytest.mark.parametrize("peer", [name for name in PEERS if name != "bookferry"])
def test_every_peer_loads_the_same_publications(address: str, data: DataFolder, ask: Ask, peer: str) -> None:
    make_snapshot(data, "bench", night(100, 0), FIRST_NIGHT)
    (snapshot,) = data.snapshots()
    complete = PEERS["bookferry"](address, data, snapshot, 100)
    load = PEERS[peer](address, data, snapshot, 100)
    assert (load.publications, load.rows) == (complete.publications, complete.rows)
    assert ask("SELECT count(*) FROM peer.publications") == ask("SELECT count(*) FROM publications") == [(100,)]
    assert ask(INDEXES, "peer") == ask(INDEXES, "bench") != []
