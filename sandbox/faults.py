"""Faults that a test adds: the next n matching requests are answered wrongly.

A fault is data; ``apply_fault`` applies it to the real response. Faults of a socket (reset, broken body) are exceptions: the
server turns them into socket errors; in process the caller gets the exception, a ``ConnectionError``.
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from email.utils import formatdate
from typing import Any

from werkzeug.wrappers import Response

from sandbox.clock import ShiftedClock
from sandbox.errors import ApiError, unprocessable
from sandbox.validation import at_least, nested_object, one_of, with_changes

# How far in the future the date of `retry_after` `http-date` is
_DATE_AHEAD_SECONDS = 2


FAULT_KINDS = ("status", "reset", "cut", "garble", "hang", "late", "jump")


class ConnectionReset(ConnectionResetError):  # noqa: N818  # intended, not an error
    """The server resets the connection and sends no response."""


class BrokenBody(ConnectionAbortedError):  # noqa: N818
    """The server ends the connection in the middle of the body."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault for requests that match ``method`` and ``path``, a regular expression searched in path and query below the tenant.

    ``fault`` is its kind. ``status``, ``code`` and ``retry_after`` (seconds, ``http-date``, or any text) belong to the kind ``status``,
    ``seconds`` to ``hang`` and ``jump``. ``when``: whether ``status`` and ``reset`` happen before or after the effect. ``jump``
    moves the service's clock by ``seconds`` just before the request. ``late`` carries the request out after a random time between
    ``least_seconds`` and ``seconds``, whether or not its sender is still there. ``answer``: what the sender gets. ``held`` keeps it
    waiting for the real response, ``reset`` and ``status`` answer before the effect. ``behind``: the effect comes not by time but right
    after that of so many further matching requests. ``share``: of the matching requests, chosen at random by ``seed``.
    """

    fault: str = one_of(*FAULT_KINDS)
    times: int = at_least(1, 1)
    share: float = at_least(0, 1.0)
    seed: int = 0
    method: str = ""
    path: str = ""
    status: int = at_least(200, 503)
    code: str = "FaultOnOrder"
    retry_after: int | str | None = None
    seconds: float = 60.0
    least_seconds: float = at_least(0, 0.0)
    answer: str = one_of("held", "reset", "status")
    behind: int = at_least(0, 0)
    when: str = one_of("before", "after")

    def matches(self, method: str, target: str) -> bool:
        """Returns whether the fault applies to a request."""
        return self.method.upper() in {"", method} and re.search(self.path, target) is not None

    @property
    def waits_for_others(self) -> bool:
        """Whether the effect comes right after that of further requests."""
        return self.fault == "late" and self.answer != "held" and self.behind > 0


Proceed = Callable[[], Response]


class FaultQueue:
    """The faults of a tenant that are still to happen, oldest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: list[Fault] = []
        self._held: list[tuple[Fault, Proceed]] = []
        self._random = random.Random(0)  # noqa: S311  # not a secret

    def add(self, fault: Fault) -> None:
        """Adds a fault."""
        with self._lock:
            self._pending.append(fault)
            self._random.seed(fault.seed)

    def take(self, method: str, target: str, proceed: Proceed) -> Fault | None:
        """Returns the fault for this request, with the seconds by which it is late, and counts it down.

        From now on further ones count that it waits for.
        """
        with self._lock:
            for position, fault in enumerate(self._pending):
                if fault.matches(method, target) and self._random.random() < fault.share:
                    remaining = fault.times - 1
                    self._pending[position : position + 1] = [replace(fault, times=remaining)] if remaining else []
                    if fault.waits_for_others:
                        self._held.append((fault, proceed))
                    if fault.fault == "late":
                        least = min(fault.least_seconds, fault.seconds)
                        return replace(fault, seconds=self._random.uniform(least, fault.seconds))
                    return fault
        return None

    def passed(self, method: str, target: str) -> None:
        """Counts a request that has had its effect, and carries out those that waited for it."""
        with self._lock:
            counted = [
                (replace(fault, behind=fault.behind - 1) if fault.matches(method, target) else fault, proceed)
                for fault, proceed in self._held
            ]
            self._held = [held for held in counted if held[0].behind]
        for fault, proceed in counted:
            if not fault.behind:
                proceed()

    def pending(self) -> list[dict[str, Any]]:
        """Returns the faults that are still to happen."""
        with self._lock:
            return [asdict(fault) for fault in self._pending]

    def clear(self) -> None:
        """Removes all faults."""
        with self._lock:
            self._pending.clear()
            self._held.clear()


def parse_fault(body: Mapping[str, Any]) -> Fault:
    """Returns the fault of ``{"match": {"method", "path"}, "fault", "times", ...}``, or raises 422."""
    values = {**body, **nested_object(body, "match")}
    values.pop("match", None)
    if "fault" not in values:
        raise unprocessable(f"fault: must be one of {', '.join(FAULT_KINDS)}")
    fault = with_changes(Fault(), values)
    try:
        re.compile(fault.path)
    except re.error as error:
        raise unprocessable(f"path: {error}") from None
    return fault


def apply_fault(fault: Fault, proceed: Proceed, clock: ShiftedClock) -> Response:
    """Answers wrongly. ``proceed`` returns the real response and has the request's effect."""
    match fault.fault:
        case "late":
            return _late(fault, proceed, clock)
        case "status" | "reset":
            if fault.when == "after":
                proceed()
            return _refusal(fault, fault.fault, clock)
        case "hang":
            clock.sleep(max(0.0, fault.seconds))
        case "jump":
            clock.ahead += fault.seconds
    response = proceed()
    body = response.get_data() if fault.fault in {"cut", "garble"} else b""
    if fault.fault == "cut":
        response.response = _cut(body[: len(body) // 2])
    if fault.fault == "garble":
        response.set_data(body[: len(body) // 2] + b'\x1b<garbled "')
    return response


def _cut(half: bytes) -> Iterator[bytes]:
    yield half
    raise BrokenBody("cut off by a fault")


def _refusal(fault: Fault, answer: str, clock: ShiftedClock) -> Response:
    if answer == "reset":
        raise ConnectionReset("reset by a fault")
    after = fault.retry_after
    if after == "http-date":
        after = formatdate(clock.now() + _DATE_AHEAD_SECONDS, usegmt=True)
    headers = {} if after is None else {"Retry-After": str(after)}
    return ApiError(fault.status, fault.code, "This answer was ordered", headers).response()


def _late(fault: Fault, proceed: Proceed, clock: ShiftedClock) -> Response:
    """The effect comes in a thread of its own, or in that of a later request, where the sender is answered before it."""

    def take_effect() -> Response:
        clock.sleep(fault.seconds)
        return proceed()

    if fault.answer == "held":
        return take_effect()
    if not fault.waits_for_others:
        threading.Thread(target=take_effect, name="late effect", daemon=True).start()
    return _refusal(fault, fault.answer, clock)
