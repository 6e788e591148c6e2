"""Writes without a response: until when they may still take effect (I8).

A request may be held by the service, or by a proxy before it, and be carried out after its connection broke or its sender was killed. So
its effect is known only by a reading that begins later than `LibraryClient.lost_write_seconds` after the request left.
"""

from __future__ import annotations

from datetime import datetime

from pipelines.errors import StopError
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import WriteState
from pipelines.migration.model.plan import Plan
from pipelines.service.client import LibraryClient, Waiting


def wait_for_unanswered(journal: Journal, client: LibraryClient) -> None:
    """Wait for the requests of ended processes that may still change the target."""
    now = client.clock.now()
    ages = (
        (now - datetime.fromisoformat(entry.sent_at or entry.begun_at)).total_seconds()
        for entry in journal.unanswered()
    )
    youngest = max(0.0, min(ages, default=client.lost_write_seconds))  # the clock may have been set back since
    due = client.clock.monotonic() + client.lost_write_seconds - youngest
    while (seconds := due - client.clock.monotonic()) > 0:
        client.wait(Waiting("a request without a response may still take effect", seconds))


def check_undo_ended(plan: Plan, journal: Journal) -> None:
    """Raise `StopError` where an undo of a plan was stopped while a request was under way: the journal does not know what it took back."""
    if any(entry.plan == plan.name and entry.state == WriteState.DONE for entry in journal.unanswered()):
        raise StopError(
            f"An undo of plan {plan.name} was stopped before its end, and the journal does not say whether its last requests took effect. "
            f"Nothing was written. Run `bookferry migrate undo {plan.name} --really` again, then apply the plan."
        )
