"""The forms of writes that a target was found to take or to refuse, in the state: each is tried once for all plans and runs (A6)."""

from __future__ import annotations

from enum import StrEnum

from pipelines.service.clock import Clock
from pipelines.state.store import State


class Operation(StrEnum):
    """What a write does."""

    CREATE = "create"
    CHANGE = "change"
    MERGE = "merge"
    UPLOAD = "upload"


class Alternative(StrEnum):
    """A form other than the documented one, which is PATCH for a change, and a body without a key around the record."""

    PUT = "put"
    """A change is a PUT of the whole record."""
    WRAPPED = "wrapped"
    """The record is in a key that is named after it."""


class MergeForm(StrEnum):
    """A form of a merge other than the assumed one, which is PATCH. A field of another name is `FIELD` with that name behind it."""

    POST = "post"
    FIELD = "field:"


class Verdict(StrEnum):
    """What is known of an alternative."""

    BEGUN = "begun"
    """It was tried, and the answer says nothing about it, or is not known."""
    TAKEN = "taken"
    REFUSED = "refused"


class KnownForms:
    """The known forms of one library, which is named by its address. Several threads may use it."""

    def __init__(self, state: State, target: str, clock: Clock) -> None:
        self._target = target.rstrip("/").lower()
        self._clock = clock
        self._store = state.open(clock, what="What is known of a library's requests", durable=True)
        self._verdicts: dict[tuple[str, str, str], str] | None = None

    def verdict(self, resource: str, operation: Operation, alternative: str) -> str | None:
        """What is known of an alternative; None where it was never tried."""
        if self._verdicts is None:
            with self._store.transaction() as db:
                rows = db.execute(
                    "SELECT resource, operation, alternative, verdict FROM request_forms WHERE target = ?",
                    (self._target,),
                ).fetchall()
            self._verdicts = {(name, kind, form): verdict for name, kind, form, verdict in rows}
        return self._verdicts.get((resource, operation, alternative))

    def taken(self, resource: str, operation: Operation) -> list[str]:
        """The alternatives that the target is known to take."""
        self.verdict(resource, operation, "")
        known = self._verdicts or {}
        return [
            form
            for (name, kind, form), verdict in known.items()
            if (name, kind, verdict) == (resource, operation, Verdict.TAKEN)
        ]

    def learn(self, resource: str, operation: Operation, alternative: str, verdict: Verdict) -> None:
        """Store durably what is known of an alternative now."""
        if self.verdict(resource, operation, alternative) == verdict:
            return
        moment = self._clock.now().isoformat(timespec="seconds")
        with self._store.transaction() as db:
            db.execute(
                "INSERT INTO request_forms VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (target, resource, operation, alternative) "
                "DO UPDATE SET verdict = excluded.verdict, learned_at = excluded.learned_at",
                (self._target, resource, operation, alternative, verdict, moment),
            )
        if self._verdicts is not None:
            self._verdicts[resource, operation, alternative] = verdict

    def close(self) -> None:
        """Close the store."""
        self._store.close()
