"""I4: people work on a library during its backup, over a real socket and onto a real disk."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipelines.backup.flow import Backup
from pipelines.service.listing import prefetch
from pipelines.store.maintenance.verification import verify_named
from tests.backup.busy_library import PAGES, BusyLibrary
from tests.backup.runner import BackupRunner, ids_in


@pytest.fixture
def busy(request: pytest.FixtureRequest) -> Iterator[BusyLibrary]:
    """A random library; the more often it rests, the sooner a walk succeeds."""
    seed: int = request.param
    with BusyLibrary(seed, quiet=(2, 6, 15)[seed % 3]) as file_library:
        file_library.furnish()
        yield file_library


@pytest.mark.parametrize(
    "busy", [*range(3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 12))], indirect=True
)
def test_a_complete_snapshot_has_every_record_that_stayed(tmp_path: Path, busy: BusyLibrary) -> None:
    """It has each record that lived throughout, once, or it is marked partial; its manifest is consistent."""
    runner = BackupRunner(tmp_path, busy.library.url)
    snapshot = runner.back_up()
    ids = ids_in(snapshot)
    assert sorted(ids) == sorted(ids_in(snapshot, "publications"))
    if snapshot.manifest.complete:
        assert busy.throughout <= set(ids)
        assert len(ids) == len(set(ids))
    assert len(busy.library.received) <= 3 * 3 * (PAGES + 2)
    [verified] = verify_named(Backup.open(runner.config).data, snapshot.name, now=datetime.now(UTC))
    assert verified.ok, verified.problems


def test_a_partial_snapshot_has_every_record_that_any_walk_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a list without order no walk can follow the changes: the snapshot is partial, and lacks nothing that was ever read."""
    monkeypatch.setattr(prefetch, "AT_ONCE", 60.0)  # pages in flight may be dropped unread
    with BusyLibrary(3, quiet=1, order=random.Random(3)) as file_library:
        file_library.furnish()
        runner = BackupRunner(tmp_path, file_library.library.url)
        snapshot = runner.back_up()
    facts = snapshot.manifest.resources["publications"]
    rows = runner.raw_rows(snapshot)
    assert not facts.complete
    assert (facts.walks, facts.requests) == (3, len(file_library.library.received))
    assert {row["id"] for row in rows} == set(file_library.last_sent)
    assert len(rows) == len(ids_in(snapshot, "publications")) == facts.records == facts.distinct_ids
    assert any("only an earlier walk read" in note for note in facts.notes)
    newest = {row["id"]: json.loads(row["payload"])["title"] for row in rows}
    assert newest == file_library.last_sent
    [verified] = verify_named(Backup.open(runner.config).data, snapshot.name, now=datetime.now(UTC))
    assert verified.ok, verified.problems
