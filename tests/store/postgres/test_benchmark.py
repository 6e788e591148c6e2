"""The benchmark is fair: every peer loads the same rows into Postgres."""

from __future__ import annotations

from benchmarks.postgres import by_bookferry, by_pandas, make_snapshot, rows_by_bookferry
from pipelines.store.snapshots.snapshots import DataFolder
from tests.store.postgres.conftest import Ask


def test_every_peer_loads_the_same_publications(address: str, data: DataFolder, ask: Ask) -> None:
    """Bookferry loads the rows of all tables; pandas loads the first publications."""
    make_snapshot(data, 100)
    (snapshot,) = data.snapshots()
    complete = by_bookferry(address, data, snapshot)
    rows = rows_by_bookferry(address, data, snapshot)
    assert (complete["publications"], complete["rows"]) == (rows["publications"], rows["rows"])
    assert ask("SELECT count(*) FROM public.publications") == ask("SELECT count(*) FROM publications") == [(100,)]
    ask("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    some = by_pandas(address, snapshot, 50, 1000, None)
    assert some["publications"] == 50
    assert 50 < some["rows"] < complete["rows"]
    assert ask("SELECT count(*) FROM public.publications") == [(50,)]
