"""The benchmark is fair: every peer loads the same rows into Postgres, and has the same keys and indexes afterwards."""

from __future__ import annotations

from itertools import pairwise

import pyarrow.parquet as pq
import pytest

from benchmarks.peers.postgres_loads import PEERS
from benchmarks.postgres import make_snapshot, ratios
from pipelines.store.snapshots.snapshots import DataFolder
from tests.store.postgres.conftest import Ask

INDEXES = """
    SELECT replace(tablename, '_20261120t020000z', ''),
        string_agg(regexp_replace(indexdef, '^.* USING ', ''), '; ' ORDER BY indexdef COLLATE "C")
    FROM pg_indexes
    WHERE schemaname = %s AND tablename LIKE 'publication%%' AND tablename !~ '_(past|checksums)$' GROUP BY 1 ORDER BY 1"""


@pytest.mark.parametrize("peer", [name for name in PEERS if name != "bookferry"])
def test_every_peer_loads_the_same_publications(address: str, data: DataFolder, ask: Ask, peer: str) -> None:
    """Bookferry, dlt and ADBC load the rows of all tables; pandas loads the first publications."""
    make_snapshot(data, 100)
    (snapshot,) = data.snapshots()
    complete = PEERS["bookferry"](address, data, snapshot, 50)
    assert ask("SELECT count(*) FROM publications") == [(complete.publications,)] == [(100,)]
    load = PEERS[peer](address, data, snapshot, 50)
    if "pandas" in peer:
        assert load.publications == 50
        assert 50 < load.rows < complete.rows
    else:
        assert (load.publications, load.rows) == (complete.publications, complete.rows)
    if peer != "bookferry rows":
        assert ask("SELECT count(*) FROM peer.publications") == [(load.publications,)]
        assert ask(INDEXES, "peer") == ask(INDEXES, "bench") != []


def test_a_later_night_has_a_few_other_titles(data: DataFolder) -> None:
    """One in a hundred. In the third night every record with a file has another checksum besides, and in the second none."""
    for night in range(3):
        make_snapshot(data, 200, night)
    files = [snapshot.path / snapshot.manifest.tables["publications"].path for snapshot in data.snapshots()]
    tables = [pq.read_table(file, columns=["title", "sha256"]).to_pydict() for file in files]
    assert [
        [sum(one != other for one, other in zip(a[column], b[column], strict=True)) for column in ("title", "sha256")]
        for a, b in pairwise(tables)
    ] == [[2, 2], [4, 157]]


def test_ratios_are_those_to_the_cheaper_form_of_each_tool() -> None:
    seconds = {
        "bookferry": 10,
        "pandas": 10,
        "pandas multi": 20,
        "dlt csv": 50,
        "dlt parquet": 20,
        "nightly": 1,
        "signed anew": 3,
        "again": 10,
    }
    loads = {
        name: {
            "publications": 10 if "pandas" in name else 100,
            "seconds": one,
            "cpu_client": one,
            "cpu_server": 2 * one,
        }
        for name, one in seconds.items()
    }
    expected = {"pandas": 10, "dlt": 2, "nightly": 0.1, "signed anew": 0.3}
    assert ratios(loads) == {"seconds": expected, "cpu": expected}
    assert ratios({"dlt csv": loads["dlt csv"]}) == {}
