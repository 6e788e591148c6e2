"""A snapshot's time is that of its first record: history never shows what came later."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from pipelines.errors import TemporaryError
from tests.backup.runner import BackupRunner
from tests.backup.test_gaps import ANSWERS, RECORDS, Library
from tests.service.manual_clock import ManualClock
from tests.service.scripted import ScriptedServer


@pytest.mark.parametrize(("bad", "keeps_name"), [(range(1, RECORDS + 1), False), (range(1, 51), True)])
def test_a_run_that_read_nothing_gives_its_name_to_none(tmp_path: Path, bad: range, *, keeps_name: bool) -> None:
    """One that read pages is continued 18 minutes later under its own name (I9)."""
    library, clock = Library(bad, ANSWERS["500"], newest_first=True), ManualClock()
    with ScriptedServer(library.serve) as server:
        library.url = server.url
        runner = BackupRunner(tmp_path, server.url, "files = false", clock)
        begun = clock.now()
        with pytest.raises(TemporaryError):
            runner.back_up("first")
        library.bad.clear()
        clock.sleep(18 * 60)
        manifest = runner.back_up("second").manifest
    started = datetime.fromisoformat(manifest.started_at)
    assert manifest.complete
    assert (started < begun + timedelta(minutes=1)) is keeps_name
    assert manifest.snapshot == f"{started:%Y%m%dT%H%M%SZ}"
