"""The leases of a shared state: rows that their holders keep beating. No clock of the day decides, and no session of the database (I9).

A holder's thread adds 1 to `beats` every two seconds. Who wants a lease that is held looks at it for as long by its own clock: where
`beats` moves, the holder lives; where it stands still for 15 seconds of looks that all succeeded, the lease is ended. A server that was
away thus leaves its holders the whole time anew. An owner is told from the next one by `fence`, which grows with each of them.

Whatever a holder writes into the state is written only while the row is its own (`check`). For what it does elsewhere, such as a request,
its last beat has to be young (`renew`): a process that was stopped or cut off for longer beats first, and finds out that it has lost.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil

from pipelines.errors import BookferryError, StorageError, TenantBusyError
from pipelines.running_process import this_owner
from pipelines.state.store import Session

BEAT_SECONDS = 2.0
"""Seconds between two beats of a holder; who waits for one looks four times as often."""

SILENCE_SECONDS = 15.0
"""Seconds without a beat after which a lease is ended. A holder counts on it for two thirds of them."""

_TAKE = (
    "INSERT INTO leases (name, fence, owner, beats) VALUES (?, 1, ?, 0) "
    "ON CONFLICT (name) DO UPDATE SET owner = excluded.owner WHERE leases.owner IS NULL RETURNING fence"
)
_OWN = "name = ? AND fence = ? AND owner = ?"
"""The owner, too: a failover to an older copy of the database can give a number out twice."""
_BEAT = f"UPDATE leases SET beats = beats + 1 WHERE {_OWN}"  # noqa: S608  our own words
_END = f"UPDATE leases SET owner = NULL, fence = fence + 1 WHERE {_OWN}"  # noqa: S608


@dataclass
class _Held:
    """A lease of this run. `beaten_at`: the monotonic time just before its last beat that arrived."""

    fence: int
    owner: str
    beaten_at: float


class LeaseTable:
    """The leases of this run. `transaction` and `close` are those of a session of their own, so that beats wait for no other work.

    `place` names the state in messages.
    """

    def __init__(
        self, transaction: Callable[[], AbstractContextManager[Session]], close: Callable[[], None], place: str
    ) -> None:
        self._transaction = transaction
        self._close = close
        self._place = place
        self._held: dict[str, _Held] = {}
        self._released = threading.Event()

    @contextmanager
    def lease(self, name: str, busy: str) -> Iterator[None]:
        """Have a lease. Raises `TenantBusyError`, with `busy` and the name of the owner, where a living run has it."""
        self._acquire(name, busy)
        try:
            yield
        finally:
            self._release(name)

    def _acquire(self, name: str, busy: str) -> None:
        owner = f"{this_owner()} since {datetime.now(UTC).isoformat(timespec='seconds')}"
        while True:
            begun = time.monotonic()
            with self._transaction() as session:
                row = session.execute(_TAKE, (name, owner)).fetchone()
            if row is not None:
                break
            if living := self.living([name]):
                raise TenantBusyError(busy.format(owner=living[name]))
        if not self._held:
            self._released = threading.Event()
            threading.Thread(target=self._keep_beating, args=(self._released,), name="leases", daemon=True).start()
        self._held[name] = _Held(row[0], owner, begun)

    def _release(self, name: str) -> None:
        """Give a lease back. Where the database cannot be reached, it ends by itself."""
        held = self._held.pop(name)
        with suppress(BookferryError), self._transaction() as session:
            session.execute(_END, (name, held.fence, held.owner))
        if not self._held:
            self._released.set()
            self._close()

    def living(self, names: Collection[str]) -> dict[str, str]:
        """Those of some leases that living runs hold, each with its owner. Waits for their beats, and ends the leases that have none."""
        living: dict[str, str] = {}
        silent = self._look(names)
        for _ in range(ceil(4 * SILENCE_SECONDS / BEAT_SECONDS)):
            if not silent:
                break
            time.sleep(BEAT_SECONDS / 4)
            now = self._look(silent)
            living |= {name: row[1] for name, row in now.items() if row != silent[name]}
            silent = {name: seen for name, seen in now.items() if name not in living}
        if silent:
            with self._transaction() as session:
                for name, seen in silent.items():
                    session.execute(f"{_END} AND beats = ?", (name, *seen))
        if not self._held:
            self._close()
        return living

    def check(self, session: Session, lock: str = "") -> None:
        """Raise `StorageError` unless all leases of this run are still its own. `lock`: what keeps them until the transaction ends."""
        for name, held in list(self._held.items()):
            own = f"SELECT 1 FROM leases WHERE {_OWN} {lock}"  # noqa: S608
            if session.execute(own, (name, held.fence, held.owner)).fetchone() is None:
                raise self._lost(name)

    def renew(self) -> bool:
        """Beat for leases whose last beat is too old for another effect. Returns whether there were any."""
        late = time.monotonic() - SILENCE_SECONDS * 2 / 3
        old = [(name, held) for name, held in list(self._held.items()) if held.beaten_at < late]
        for name, held in old:
            self._beat(name, held)
        return bool(old)

    def fence(self, name: str) -> int:
        """The number of a lease of this run. Raises `StorageError` where it was lost."""
        if name not in self._held:
            raise self._lost(name)
        self.renew()
        with self._transaction() as session:
            self.check(session)
        return self._held[name].fence

    def _beat(self, name: str, held: _Held) -> None:
        begun = time.monotonic()
        with self._transaction() as session:
            if session.execute(_BEAT, (name, held.fence, held.owner)).rowcount != 1:
                raise self._lost(name)
        held.beaten_at = max(held.beaten_at, begun)

    def _keep_beating(self, released: threading.Event) -> None:
        """Beat until all leases are released. One that is lost, or a database that cannot be reached, is told by what needs them."""
        while not released.wait(BEAT_SECONDS):
            for name, held in list(self._held.items()):
                with suppress(BookferryError):
                    self._beat(name, held)
        if not self._held:
            self._close()  # a beat that waited for its turn may have opened the session again

    def _look(self, names: Collection[str]) -> dict[str, tuple[int, str, int]]:
        with self._transaction() as session:
            rows = session.execute("SELECT name, fence, owner, beats FROM leases WHERE owner IS NOT NULL").fetchall()
        return {name: (fence, owner, beats) for name, fence, owner, beats in rows if name in names}

    def _lost(self, name: str) -> StorageError:
        return StorageError(
            f"This run has lost the lease of '{name.partition(' ')[0]}' (`leases` in {self._place}): it was silent for too long. Nothing "
            "further is sent or written. Run the same command again."
        )
