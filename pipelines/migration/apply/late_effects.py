"""Writes without a response: until when they may still take effect (I8).

A request may be held by the service, or by a proxy before it, and be carried out after its connection broke or its sender was killed. So
its effect is known only by a lookup that begins later than `LibraryClient.effect_seconds` after the request left.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from datetime import datetime

from pipelines.errors import StopError
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import JournalEntry, WriteState, in_doubt
from pipelines.migration.model.plan import Plan
from pipelines.service.client import LibraryClient, Waiting

LAST_LOOK = 2
"""How many times `effect_seconds` pass between the repetition of a write and the last look for twins."""


class PendingWriteError(Exception):
    """It is not known yet whether a write takes effect; other rows go on. `due`: when a lookup decides it, on the clock's `monotonic`."""

    def __init__(self, due: float) -> None:
        super().__init__(f"pending until {due}")
        self.due = due


class LateEffects:
    """Tells when the requests of journal entries can take no effect any more. Safe to use from several threads."""

    def __init__(self, client: LibraryClient) -> None:
        self._client = client
        self._clock = client.clock
        self._lock = threading.Lock()
        self._due: dict[tuple[int, str], float] = {}

    def now(self) -> float:
        """The clock's `monotonic`."""
        return self._clock.monotonic()

    def due(self, entry: JournalEntry) -> float:
        """When an entry is decided by a lookup, on the clock's `monotonic`.

        It stays the same in this process, even where the time of day is set back. What was sent after now, by the time of day, counts as
        sent now.
        """
        if entry.sent_at is None:
            return self._clock.monotonic()
        with self._lock:
            key = entry.number, entry.sent_at
            if key not in self._due:
                self._due[key] = self._clock.monotonic() + self._client.effect_seconds - self._passed(entry)
            return self._due[key]

    def _passed(self, entry: JournalEntry) -> float:
        """Seconds since the request left, rather too few than too many: the time of day may have been set meanwhile."""
        passed = [(self._clock.now() - datetime.fromisoformat(entry.sent_at or entry.begun_at)).total_seconds()]
        if (
            entry.sent_tick is not None and entry.sent_tick <= self._clock.monotonic()
        ):  # else the machine was started anew
            passed.append(self._clock.monotonic() - entry.sent_tick)
        return max(0.0, min(passed))

    def is_over(self, entry: JournalEntry) -> bool:
        """Whether a lookup that begins now decides about an entry."""
        return self.due(entry) <= self._clock.monotonic()

    def wait_for(self, entries: Iterable[JournalEntry]) -> None:
        """Wait until all these entries can be decided."""
        self.wait_until(max(map(self.due, entries), default=0.0))

    def wait_until(self, due: float, reason: str = "a request without a response may still take effect") -> None:
        """Wait until a moment on the clock's `monotonic`."""
        while (seconds := due - self._clock.monotonic()) > 0:
            self._client.wait(Waiting(reason, seconds))

    def wait_before_last_look(self, entries: Collection[JournalEntry]) -> None:
        """Wait until the last requests of repeated entries are long enough ago for the last look."""
        now, wait = self._clock.now(), LAST_LOOK * self._client.effect_seconds
        ended = (datetime.fromisoformat(entry.ended_at or entry.begun_at) for entry in entries)
        left = max((wait - max(0.0, (now - moment).total_seconds()) for moment in ended), default=0.0)
        self.wait_until(
            self._clock.monotonic() + left,
            "a request was sent again, and the first one may take effect late: a last look follows",
        )


def wait_for_others(journal: Journal, client: LibraryClient, plan: str = "") -> None:
    """Wait for the requests of ended processes that may still change the target, except those that an apply of `plan` looks up itself."""
    LateEffects(client).wait_for(entry for entry in journal.unanswered() if entry.plan != plan or not in_doubt(entry))


def check_undo_ended(plan: Plan, journal: Journal) -> None:
    """Raise `StopError` where an undo of a plan was stopped while a request was under way: the journal does not know what it took back."""
    if any(entry.plan == plan.name and entry.state == WriteState.DONE for entry in journal.unanswered()):
        raise StopError(
            f"An undo of plan {plan.name} was stopped before its end, and the journal does not say whether its last requests took effect. "
            f"Nothing was written. Run `bookferry migrate undo {plan.name} --really` again, then apply the plan."
        )
