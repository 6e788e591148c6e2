"""The request budget of a library, shared by every thread, process and run on one state (I1).

A request needs a slot, and a library has `requests_per_minute` slots. A request takes its slot before it leaves, and the slot is free again
one minute after it left. This is enough for the promise "never more requests in any 60 seconds". Proof: of the requests in some 60 seconds,
take the one whose slot was taken last. At that moment the slots of all the others were taken and none was free again, so together there are
at most as many requests as slots.

- When a slot is taken, the departure of its request is unknown: it may have to connect first. `acquire` books the slot for a request that
  leaves within `PROMPT`, and `Permit.sent` books it anew if the headers leave later; on a state that several machines share, always,
  because that checks the lease. A process that is killed in between has paid for the request that it may have sent; its slot becomes free
  by itself.
- The service counts requests when they arrive. A slow request and a quick one after it arrive closer together than they left. Therefore
  each slot stays taken `MARGIN` seconds longer; and if the response came later than the quickest one by more than that, so much longer,
  because the request may have arrived so much later (`Permit.answered`).
- A caller that finds no free slot sleeps until the next one will be free, and looks again now and then: a slot may be given back, and a
  pause may begin. Threads of one process take turns, so that one of them looks.
- The store gives the time (`Store.moment`): that of the machine's monotonic clock for a file, which one machine at a time works on; that of
  the database for several machines. The request leaves after the commit's way from the database: up to the store's allowance, that is part
  of the margin; a booking whose commit took longer is repeated.
"""

from __future__ import annotations

import contextlib
import math
import threading
from typing import TYPE_CHECKING

from pipelines.errors import StorageError
from pipelines.service.clock import Clock, SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.state.store import Moment, Session, State

WINDOW_SECONDS = 60.0
"""Seconds of the window in which the service counts requests (service.md#rate)."""

MARGIN = 0.4
"""Seconds by which travel times to the service may differ: a lost packet is sent again after a little more than 0.2 s. Costs 0.7 % of the
budget."""

LEARNING = 10
"""Responses after which the quickest of them says how long the way there and back is. Until then it counts as no time."""

LONGEST_WAY = 1.0
"""Seconds of a way at most. What takes longer waited somewhere, and the next request may not."""

PROMPT = 0.01
"""Seconds for which a booking covers a request that has not left yet. Most leave sooner, which saves a transaction for each of them. Costs
0.02 % of the budget."""

MOST_AHEAD = 10.0
"""Seconds by which a booking may lie further ahead than one that is made now: a commit is slow, or an earlier version made it."""

MOST_LIKELY = MOST_AHEAD - 1.0
"""Seconds for which a booking waits at most for a slow commit. One beyond `MOST_AHEAD` would be taken for one of before a boot."""

LOOK_SECONDS = 0.5
"""Seconds until a caller that waits looks again."""

REPORTED_WAIT = 1.0
"""Seconds. `on_wait` reports longer waits only."""


class Permit:
    """The right to send one request. Call `sent` when it leaves, or `release` if it certainly did not.

    Without either call the request counts as sent.
    """

    def __init__(self, budget: Budget, slot: int, until: float) -> None:
        self._budget = budget
        self._slot, self._until = slot, until
        """The slot, and the clock's time until which its request may leave."""
        self._was_sent = False

    def sent(self) -> None:
        """Count the request as leaving now. Call it just before the headers leave, and again after a while; the last call counts.

        Waits for another slot if this one is free again already: then the process was stopped for more than a minute.
        """
        self._slot, self._until = self._budget._book_for_now(self._slot, self._until)  # noqa: SLF001  a permit is part of its budget
        if not self._was_sent:
            self._budget._count()  # noqa: SLF001
        self._was_sent = True

    def answered(self, seconds: float) -> None:
        """Count the request as arriving up to now, so many seconds after it left: keep the slot longer if it may have been delayed."""
        self._budget._note_delay(self._slot, seconds)  # noqa: SLF001

    def release(self) -> None:
        """Give the slot back. Does nothing after `sent`."""
        if not self._was_sent:
            self._budget._give_back(self._slot)  # noqa: SLF001


class Budget:
    """The budget of one library, in `state` under the name `library`.

    Threads share one object; it works again after `close`. `on_wait` gets the seconds for which `acquire` is about to wait; `on_pause`
    gets them instead if the service asked for the pause. Raises `StorageError` if the state cannot be used, or if this run has lost its
    lease: then no further request is granted.
    """

    def __init__(
        self,
        state: State,
        library: str,
        requests_per_minute: int,
        clock: Clock | None = None,
        *,
        on_wait: Callable[[float], None] = lambda _: None,
        on_pause: Callable[[float], None] | None = None,
        window: float = WINDOW_SECONDS,
    ) -> None:
        if requests_per_minute < 1:
            raise ValueError(f"requests_per_minute is {requests_per_minute}; it must be at least 1")
        self._library = library
        self._limit = requests_per_minute
        self._clock = clock or SystemClock()
        self._on_wait = on_wait
        self._on_pause = on_pause or on_wait
        self._kept = window + MARGIN
        self.requests = 0
        """Requests that this object let leave; every try counts."""
        self._turn, self._counting = threading.Lock(), threading.Lock()
        self._delays = 0
        self._shortest = math.inf
        self._is_shared = not state.is_own
        self._renew_leases = state.renew_leases
        self._store = state.open(self._clock)
        self._looking = f"SELECT {self._store.taken}, paused_until FROM budget_libraries l WHERE library = ?"  # noqa: S608  our own words
        with self._store.transaction() as db:
            db.execute("INSERT INTO budget_libraries (library) VALUES (?) ON CONFLICT (library) DO NOTHING", (library,))
            self._mend_after_step(db, self._now(db))

    def acquire(self) -> Permit:
        """Wait for a slot and take it. An exception of a signal or of the clock ends the wait."""
        return Permit(self, *self._acquire_slot())

    def pause(self, seconds: float) -> None:
        """Grant no slot for `seconds` from now (a 429 with Retry-After). Never shortens an earlier pause."""
        if not math.isfinite(seconds):
            raise ValueError(f"a pause of {seconds} seconds would never end")
        with self._store.transaction() as db:
            now = self._now(db)
            db.execute(
                "UPDATE budget_libraries SET paused_at = :now, paused_until = :until"
                " WHERE library = :library AND paused_until < :until",
                {"now": now, "until": now + seconds, "library": self._library},
            )

    def close(self) -> None:
        """Close the store. Taken slots stay taken."""
        self._store.close()

    def _count(self) -> None:
        with self._counting:
            self.requests += 1

    def _acquire_slot(self) -> tuple[int, float]:
        """Take a slot. Return it, and the clock's time until which its request may leave."""
        # In short waits: a signal that the kernel gives to another thread does not wake the main thread, whose handler would run only then
        while not self._turn.acquire(timeout=LOOK_SECONDS):
            pass
        try:
            reported = self._clock.monotonic()
            while True:
                booking, until, paused = self._try_to_take()
                if booking is not None:
                    return booking
                reported = self._wait(until, reported, self._on_pause if paused else self._on_wait)
        finally:
            self._turn.release()

    def _try_to_take(self) -> tuple[tuple[int, float] | None, float, bool]:
        """Return a slot; or else the clock's time at which there will be one, and whether that is the end of a pause."""
        with self._store.transaction() as db:
            moment = self._moment(db)
            now = moment.now
            slots_taken, paused_until = self._look(db, now)
            if slots_taken < self._limit and paused_until <= now:
                insert = "INSERT INTO budget_slots (library, free_at) VALUES (?, ?) RETURNING slot"
                (slot,) = db.execute(insert, (self._library, now + PROMPT + self._kept)).fetchone()
                # Where several machines share the state, `sent` checks the lease of every request
                until = -math.inf if self._is_shared else moment.asked_at + PROMPT
                return (slot, until), 0.0, False
            free_at = now if slots_taken < self._limit else self._free_at(db, slots_taken - self._limit)
        return None, max(paused_until, free_at) + (self._clock.monotonic() - now), paused_until > free_at

    def _look(self, db: Session, now: float) -> tuple[int, float]:
        """Free expired slots. Return the slots taken and the end of the pause."""
        db.execute("DELETE FROM budget_slots WHERE library = ? AND free_at <= ?", (self._library, now))
        row: tuple[int, float] | None = db.execute(self._looking, (self._library,)).fetchone()
        if row is None:
            raise StorageError(
                f"The budget of {self._library} is no longer here: the state was moved. Nothing further is sent. Correct `state` in "
                "bookferry.toml, then run the same command again."
            )
        return row

    def _free_at(self, db: Session, lacking: int) -> float:
        """Return when there will be one slot more than `lacking`, as far as is known now."""
        oldest = "SELECT free_at FROM budget_slots WHERE library = ? ORDER BY free_at LIMIT 1 OFFSET ?"
        (free_at,) = db.execute(oldest, (self._library, lacking)).fetchone()
        return float(free_at)

    def _wait(self, until: float, reported: float, report: Callable[[float], None]) -> float:
        """Sleep, but not longer than until the next look.

        `reported` and the return value are the end of the wait that was reported last.
        """
        now = self._clock.monotonic()
        if until > max(now, reported) + REPORTED_WAIT:
            reported = until
            report(until - now)
        self._clock.sleep(max(0.0, min(until - now, LOOK_SECONDS)))
        return reported

    def _book_for_now(self, slot: int, until: float) -> tuple[int, float]:
        """Return a booking for a request that leaves now: this one if it is recent, or one of its slot, or of another slot."""
        likely = 0.0  # seconds that the commit is expected to take beyond the allowance
        while self._clock.monotonic() > until or self._renew_leases():
            with self._store.transaction() as db:
                moment = self._moment(db)
                free_at = moment.now + likely + PROMPT + self._kept
                update = "UPDATE budget_slots SET free_at = ? WHERE slot = ?"
                held = db.execute(update, (free_at, slot)).rowcount == 1
            if held:
                until = moment.asked_at + likely + PROMPT + self._store.allowance
                likely = min(2 * (self._clock.monotonic() - moment.asked_at), MOST_LIKELY)
            else:
                (slot, until), likely = self._acquire_slot(), 0.0
        return slot, until

    def _note_delay(self, slot: int, seconds: float) -> None:
        """Keep a slot for a window from when its request has certainly arrived: now, less the shortest way of a response."""
        self._delays += 1  # threads may do so at once: it counts roughly
        self._shortest = min(self._shortest, seconds)
        shortest = min(self._shortest, LONGEST_WAY) if self._delays > LEARNING else 0.0
        if seconds - shortest <= MARGIN - self._store.allowance:
            return
        with contextlib.suppress(StorageError), self._store.transaction() as db:
            free_at = self._now(db) - shortest + self._kept
            db.execute("UPDATE budget_slots SET free_at = ? WHERE slot = ? AND free_at < ?", (free_at, slot, free_at))

    def _give_back(self, slot: int) -> None:
        """Give a slot back, or let it become free by itself: what ended the request must not be hidden by that."""
        with contextlib.suppress(StorageError), self._store.transaction() as db:
            db.execute("DELETE FROM budget_slots WHERE slot = ?", (slot,))

    def _now(self, db: Session) -> float:
        return self._moment(db).now

    def _moment(self, db: Session) -> Moment:
        """Return the time of this budget, after what that time demands: stored times are mended where it was set or is not known."""
        moment = self._store.moment(db, self._library)
        now = moment.now
        if moment.lost:  # as many requests as possible may have left just now
            charge = "INSERT INTO budget_slots (library, free_at) VALUES (?, ?)"
            db.executemany(charge, [(self._library, now + self._kept)] * self._limit)
        if moment.known_until is not None:
            db.execute(
                "UPDATE budget_slots SET free_at = :free_at WHERE library = :library AND free_at > :known AND free_at < :free_at",
                {"free_at": now + self._kept, "library": self._library, "known": moment.known_until},
            )
        if moment.stepped:
            self._mend_after_step(db, now)
        return moment

    def _mend_after_step(self, db: Session, now: float) -> None:
        """Move times that lie too far ahead back to now: the clock started anew at boot, and the time since then is not known."""
        at_most = now + MOST_AHEAD + self._kept
        db.execute(
            "UPDATE budget_slots SET free_at = ? WHERE library = ? AND free_at > ?",
            (now + self._kept, self._library, at_most),
        )
        db.execute(
            "UPDATE budget_libraries SET paused_at = :now, paused_until = :now + paused_until - paused_at"
            " WHERE library = :library AND paused_at > :now",
            {"now": now, "library": self._library},
        )
