"""The words of plans, journals and decisions are stored, so they never change."""

from __future__ import annotations

from contextlib import closing

from pipelines.migration.model.actions import Action, Decision, FileAction
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import WriteKind, WriteState
from pipelines.service.clock import SystemClock
from tests.state_places import Place


def test_the_stored_words_are_these() -> None:
    assert [*Action] == ["create", "patch", "merge", "unchanged", "conflict", "skipped", "quarantined"]
    assert [*FileAction] == ["upload", "there", "missing"]
    assert [*Decision] == ["create", "skip", "match", "source", "target", "merge"]
    assert [*WriteKind] == ["create", "patch", "adopt", "link", "merge", "asset", "cover"]
    assert [*WriteState] == ["intended", "done", "refused", "parked", "undone"]


def test_the_journal_stores_words_as_text(place: Place) -> None:
    with closing(Journal(place.state(clock := SystemClock()), "https://old", "https://new", clock)) as journal:
        journal.done(journal.intend("plan", "users", 1, WriteKind.CREATE), target_id=2)
        [row] = journal.columns_of_plan("plan", ["kind", "state"])
        assert [type(value) for value in row] == [str, str]
        [entry] = journal.of_plan("plan")
        assert (entry.kind, entry.state) == (WriteKind.CREATE, WriteState.DONE)
        assert type(entry.state) is WriteState
