"""Faults on order: the next n requests that match are answered wrongly, in a way chosen by whoever ordered it.

A fault is data; ``apply_fault`` plays it around the real answer. What a socket has to do (reset, break off) is an exception that
the server turns into it; in process the caller meets the exception, which is a ``ConnectionError``.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from email.utils import formatdate
from typing import Any, Protocol

from werkzeug.wrappers import Response

from sandbox.clock import ShiftedClock
from sandbox.errors import ApiError, unprocessable
from sandbox.responses import error_response
from sandbox.state.publications import Publications
from sandbox.validation import at_least, nested_object, one_of, with_changes

# How far ahead the date lies when `retry_after` is `http-date`
_DATE_AHEAD_SECONDS = 2


class ConnectionReset(ConnectionResetError):  # noqa: N818  # an order, not a mistake
    """The connection is to be reset; nothing is answered."""


class BrokenBody(ConnectionAbortedError):  # noqa: N818
    """The connection is to end in the middle of the body."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An order. ``method`` and ``path`` (a regular expression searched in path and query below the tenant) say for whom.

    ``fault``: its kind. ``status`` and ``retry_after`` (seconds, ``http-date``, or any text) belong to the kind
    ``status``, ``seconds`` to ``hang``; ``when`` says whether ``status`` and ``reset`` come before or after the effect.
    ``edit`` is somebody else at work: just before the request it removes or retitles publications by id and adds
    some. ``jump`` puts the service's clock ``seconds`` ahead (or back) just before the request.
    """

    fault: str = one_of("status", "reset", "cut", "garble", "hang", "edit", "jump")
    times: int = at_least(1, 1)
    method: str = ""
    path: str = ""
    status: int = at_least(400, 503)
    retry_after: int | str | None = None
    seconds: float = 60.0
    when: str = one_of("before", "after")
    remove: list[int] = field(default_factory=list)
    add: int = at_least(0, 0)
    change: list[int] = field(default_factory=list)

    def matches(self, method: str, target: str) -> bool:
        """Whether this request is meant."""
        return self.method.upper() in {"", method} and re.search(self.path, target) is not None


class FaultQueue:
    """The orders of one tenant, oldest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Have a fault happen."""
        with self._lock:
            self._pending.append(fault)

    def take(self, method: str, target: str) -> Fault | None:
        """The fault for this request, which uses it up once."""
        with self._lock:
            for position, fault in enumerate(self._pending):
                if fault.matches(method, target):
                    left = fault.times - 1
                    self._pending[position : position + 1] = [replace(fault, times=left)] if left else []
                    return fault
        return None

    def pending(self) -> list[dict[str, Any]]:
        """What has not happened yet."""
        with self._lock:
            return [asdict(fault) for fault in self._pending]

    def clear(self) -> None:
        """Forget every order."""
        with self._lock:
            self._pending.clear()


def parse_fault(order: Mapping[str, Any]) -> Fault:
    """The fault that a JSON order describes: ``{"match": {"method", "path"}, "fault", "times", ...}``, or 422."""
    values = {**order, **nested_object(order, "match")}
    values.pop("match", None)
    if "fault" not in values:
        raise unprocessable(f"fault: must be one of {', '.join(FAULT_KINDS)}")
    fault = with_changes(Fault(), values)
    try:
        re.compile(fault.path)
    except re.error as error:
        raise unprocessable(f"path: {error}") from None
    return fault


class FaultTarget(Protocol):
    """What a fault may touch of a tenant."""

    clock: ShiftedClock
    publications: Publications


Proceed = Callable[[], Response]


def apply_fault(fault: Fault, proceed: Proceed, stage: FaultTarget) -> Response:
    """Answer wrongly. ``proceed`` is the real answer and has the request's effect."""
    return FAULT_KINDS[fault.fault](fault, proceed, stage)


def _status(fault: Fault, proceed: Proceed, stage: FaultTarget) -> Response:
    if fault.when == "after":
        proceed()
    headers = {} if fault.retry_after is None else {"Retry-After": _retry_after(fault.retry_after, stage.clock.now())}
    return error_response(ApiError(fault.status, "FaultOnOrder", "This answer was ordered", headers))


def _retry_after(value: int | str, now: float) -> str:
    return formatdate(now + _DATE_AHEAD_SECONDS, usegmt=True) if value == "http-date" else str(value)


def _reset(fault: Fault, proceed: Proceed, stage: FaultTarget) -> Response:  # noqa: ARG001  # every kind has one signature
    if fault.when == "after":
        proceed()
    raise ConnectionReset("reset on order")


def _cut(fault: Fault, proceed: Proceed, stage: FaultTarget) -> Response:  # noqa: ARG001
    response = proceed()
    body = response.get_data()
    response.response = _half_of(body)
    return response


def _half_of(body: bytes) -> Iterator[bytes]:
    yield body[: len(body) // 2]
    raise BrokenBody("broken off on order")


def _garble(fault: Fault, proceed: Proceed, stage: FaultTarget) -> Response:  # noqa: ARG001
    response = proceed()
    body = response.get_data()
    response.set_data(body[: len(body) // 2] + b'\x1b<garbled "')
    return response


def _hang(fault: Fault, proceed: Proceed, stage: FaultTarget) -> Response:
    stage.clock.sleep(max(0.0, fault.seconds))
    return proceed()


def _edit(fault: Fault, proceed: Proceed, stage: FaultTarget) -> Response:
    stage.publications.edit(remove=fault.remove, add=fault.add, change=fault.change)
    return proceed()


def _jump(fault: Fault, proceed: Proceed, stage: FaultTarget) -> Response:
    stage.clock.ahead += fault.seconds
    return proceed()


FAULT_KINDS: Mapping[str, Callable[[Fault, Proceed, FaultTarget], Response]] = {
    "status": _status,
    "reset": _reset,
    "cut": _cut,
    "garble": _garble,
    "hang": _hang,
    "edit": _edit,
    "jump": _jump,
}
