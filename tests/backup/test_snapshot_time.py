"""A snapshot's time is that of its first record: history never shows what came later."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.errors import TemporaryError
from tests.backup.runner import backups_of
from tests.backup.test_gaps import ANSWERS, Library
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Answer, Received


@pytest.mark.parametrize(("answered", "keeps_name"), [(0, False), (4, True)])
def test_a_run_that_read_nothing_gives_its_name_to_none(tmp_path: Path, answered: int, *, keeps_name: bool) -> None:
    """One that read pages before an outage is continued 18 minutes later under its own name (I9)."""
    library, clock, outage = Library((), ANSWERS["500"], newest_first=True), ManualClock(), [True]

    def serve(request: Received) -> Answer:
        return ANSWERS["500"] if outage and len(server.received) > answered else library.serve(request)

    with backups_of(tmp_path, serve, clock) as (runner, server):
        begun = clock.now()
        with pytest.raises(TemporaryError):
            runner.back_up("first")
        outage.clear()
        clock.sleep(18 * 60)
        manifest = runner.back_up("second").manifest
    started = datetime.fromisoformat(manifest.started_at)
    assert manifest.complete
    assert (started < begun + timedelta(minutes=1)) is keeps_name
    assert manifest.snapshot == f"{started:%Y%m%dT%H%M%SZ}"


@pytest.mark.parametrize("page", [1, 2])
def test_a_wait_before_the_first_page_is_before_the_snapshot(tmp_path: Path, page: int) -> None:
    """The name, the time in the manifest and the name in the tables are of 20 minutes later. Later pages do not change them."""
    library, clock, waits = Library((), ANSWERS["500"]), ManualClock(), [1200]
    begun = clock.now()

    def serve(request: Received) -> Answer:
        if waits and request.query.get("page") == str(page):
            clock.sleep(waits.pop())
        return library.serve(request)

    with backups_of(tmp_path, serve, clock) as (runner, _server):
        snapshot = runner.back_up()
    manifest = snapshot.manifest
    started = datetime.fromisoformat(manifest.started_at)
    assert timedelta(minutes=20 * (page == 1)) <= started - begun < timedelta(minutes=20 * (page == 1) + 1)
    assert manifest.snapshot == f"{started:%Y%m%dT%H%M%SZ}"
    assert set(pq.read_table(snapshot.path / "publications.parquet")["snapshot"].to_pylist()) == {manifest.snapshot}
