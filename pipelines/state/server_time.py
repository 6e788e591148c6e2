"""The time of a library's budget on the shared state: the server's clock, less what it was set forward, as the machines' own clocks tell.

The server's clock is wall time, which a person or NTP may set. Each machine therefore keeps, in its row, when it last read the budget's
time and what its own monotonic clock said just before and just after. At the next reading the two must have gone on by the same:

- The budget's time went on by more than the machine's clock can have: the server's clock was set forward, and the difference is added to
  the library's shift. Slots stay taken as long as they should.
- It went on by less: the server's clock was set back, and the difference is taken from the shift. Otherwise slots would stay taken for
  hours.
- A machine without a row cannot compare.

Where a machine finds a step or cannot compare, what was taken when somebody last read the time counts as taken from now on: nobody knows by
which time it was granted. After a step, the rows of all other machines are removed for the same reason. So a step costs a window at most.
A row is written again once it is a second old.

What nobody can see: steps that cancel each other while every machine with a row is silent, and another one grants by the wrong time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from pipelines.running_process import this_machine
from pipelines.state.server import Server, Statements
from pipelines.state.store import Moment, Ticking

_AHEAD = 0.001
"""Seconds by which the server's clock may gain on a machine's before that is undone. Undoing it frees slots later, never earlier."""

_STEP = 0.1
"""Seconds by which it may fall behind before that is undone, which frees slots earlier; and by which clocks differ only if one was set."""

_DRIFT = 0.001
"""Seconds in a second by which clocks differ that nobody set: NTP corrects them by half of that at most."""

_FRESH = 1.0
"""Seconds until a machine's row is written again."""

_FORGOTTEN = 30 * 86_400.0
"""Seconds until the row of a machine that is not seen any more is removed."""

_LOOK = """
    SELECT CAST(extract(epoch FROM clock_timestamp()) AS float8), c.shift, c.server, c.seen, m.asked_at, m.told_at, m.seen,
        {history}
    FROM budget_libraries l LEFT JOIN budget_clocks c ON c.library = l.library
        LEFT JOIN budget_machines m ON m.library = l.library AND m.machine = ?
    WHERE l.library = ?
"""


_KEEP_CLOCK = """
    INSERT INTO budget_clocks (library, shift, seen, server) VALUES (?, ?, ?, ?)
    ON CONFLICT (library) DO UPDATE SET shift = excluded.shift, seen = excluded.seen, server = excluded.server
"""
_KEEP_MACHINE = """
    INSERT INTO budget_machines (library, machine, asked_at, told_at, seen) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (library, machine) DO UPDATE SET asked_at = excluded.asked_at, told_at = excluded.told_at, seen = excluded.seen
"""


class ServerTime:
    """Reads the time in transactions of a server. `server_clock` replaces the server's clock in tests."""

    def __init__(
        self, server: Server, *, server_clock: Callable[[], float] | None = None, machine: str | None = None
    ) -> None:
        self._server = server
        self._server_clock = server_clock
        self._machine = machine or this_machine() or uuid4().hex

    def read(self, statements: Statements, library: str, clock: Ticking) -> Moment:
        """Lock the library's row and return the time."""
        statements.execute("SELECT 1 FROM budget_libraries WHERE library = ? FOR UPDATE", (library,))
        asked_at = clock.monotonic()
        [row] = statements.execute(
            _LOOK.replace("{history}", self._server.history), (self._machine, library)
        ).fetchall()
        told_at = clock.monotonic()
        return self._moment(statements, library, row, (asked_at, told_at))

    def _moment(self, statements: Statements, library: str, row: tuple[Any, ...], span: tuple[float, float]) -> Moment:
        server_now, shift, server, last_seen, asked_before, told_before, seen, history = row
        if self._server_clock is not None:
            server_now = self._server_clock()
        shift = shift or 0.0
        uncorrected = server_now - shift
        change = 0.0
        if seen is not None:
            passed = uncorrected - seen
            most, least = span[1] - asked_before, span[0] - told_before
            if passed - most > _AHEAD:
                change = passed - most
            elif least - passed > _STEP + _DRIFT * max(0.0, least):
                change = passed - least
        now = uncorrected - change
        is_step = abs(change) > _STEP
        if is_step:
            statement = "DELETE FROM budget_machines WHERE library = ? AND machine != ?"
            statements.execute(statement, (library, self._machine))
        if seen is None or change or server != history or now - seen >= _FRESH:
            statements.execute(_KEEP_CLOCK, (library, shift + change, now, history))
            statements.execute(_KEEP_MACHINE, (library, self._machine, *span, now))
        if seen is None:
            statements.execute(
                "DELETE FROM budget_machines WHERE library = ? AND seen < ?", (library, now - _FORGOTTEN)
            )
        return Moment(
            now,
            span[0],
            stepped=is_step or seen is None,
            known_until=last_seen if seen is None or is_step else None,
            lost=server not in (None, history),
        )
