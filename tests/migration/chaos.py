"""A proxy in front of the sandbox with random faults, before and after a request has its effect; and processes that apply a plan."""

from __future__ import annotations

import random
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import Queue

import pytest

from pipelines.migration.flow import Migration
from pipelines.migration.limits import Limits
from pipelines.migration.model.plan_folders import find_plan
from pipelines.settings.config_file import load_settings
from tests.forks import start
from tests.migration.library_pair import FastClock
from tests.service.scripted import Answer, Received, ScriptedServer, forwarded

ROOT_PATHS = ("/oauth/", "/_control/")
"""Paths without faults: a lost response to a refresh ends a sign-in under the strict policy, and other tests cover that."""

LATE = ("late", "late 502", "late held")
"""The effect comes some time after the connection was reset, after a proxy answered, or before the answer, which the sender waits for."""

FAULTS = (
    *LATE,
    "reset before",
    "reset after",
    "500 before",
    "500 after",
    "503 after",
    "429",
    "cut",
    "lag",
    "expired",
)

WAYS = [pytest.param(FAULTS, 0.1, id="any fault"), pytest.param(LATE, 0.3, id="late effects")]
"""What happens, and the share of requests to which it happens."""

LATE_SECONDS = 0.1, 0.6
"""Seconds after which a late request is carried out: less than the read timeout of `carry_out`."""

MOST_RUNS = 200
"""Of one plan, those that were killed or failed included."""

_SIGNATURE = re.compile(rb'(?i)("x-amz-signature":\s*"[0-9a-f]+)[0-9a-f]{4}')
"""Part of a presigned form. The storage refuses a wrong signature like an expired one, with 403."""


def carry_out(config: Path, plan: str, command: str) -> None:
    """Apply or undo a plan. An undo leaves authorities and tasks, because the service deletes none."""
    with Migration(load_settings(config), clock=FastClock(), read_seconds=1.0) as migration:
        loaded_plan = find_plan(migration.data, plan)
        if command == "undo":
            undone = migration.undo(loaded_plan, really=True)
            print([finding.problem for finding in undone.findings][:3], file=sys.stderr)  # noqa: T201  seen where a test fails
            sys.exit(0 if all(finding.resource in ("authorities", "tasks") for finding in undone.findings) else 3)
        applied = migration.apply(loaded_plan, limits=Limits(failures=10**9, failures_percent=100))
        sys.exit(3 if applied.failed or applied.left else 0)


def run_killed(
    config: Path, plan: str, dice: random.Random, *, most: int, longest: float, command: str = "apply"
) -> int:
    """Apply or undo a plan again and again until it is complete, the first times killed at random instants. Returns the number of kills."""
    kills = 0
    for _ in range(MOST_RUNS):
        process = start(carry_out, config, plan, command)
        process.join(dice.uniform(0.05, longest) if kills < most else None)
        process.kill()
        process.join()
        if process.exitcode == 0:
            return kills
        kills += process.exitcode == -signal.SIGKILL
    pytest.fail("never complete")


class RoughWay(ScriptedServer):
    """Forwards requests to a server. Each has one of the `faults` with the probability `share`; `happened` counts them."""

    def __init__(self, server: str, share: float, seed: int, faults: Sequence[str] = FAULTS) -> None:
        super().__init__(self.answer)
        self.server, self._faults = server, faults
        self.share = share
        """The probability of a fault; may be changed at any time."""
        self._random = random.Random(seed)
        self.happened: Counter[str] = Counter()

    def fault_of(self, method: str, path: str) -> str:
        """The fault of a request; empty for none."""
        with self._lock:
            if self._random.random() >= self.share or any(root in path for root in ROOT_PATHS):
                return ""
            presign, search = "/presign" in path, method == "GET" and "/publications?" in path
            possible = {"lag": search, "expired": presign, **dict.fromkeys(LATE, method != "GET")}
            fits = [fault for fault in self._faults if possible.get(fault, True)]
            if not fits:
                return ""
            fault = self._random.choice(fits)
            self.happened[f"{method} {fault}"] += 1
            return fault

    def answer(self, request: Received) -> Answer:
        """Answer a request, or make it fail."""
        fault = self.fault_of(request.method, request.target)
        seconds = self._random.uniform(*LATE_SECONDS)
        if fault in {"late", "late 502"}:
            threading.Timer(seconds, self._take_effect, (request,)).start()
        if fault in {"late", "reset before"}:
            raise ConnectionResetError
        if fault == "late 502":
            return Answer(status=502, headers={"connection": "close"})
        if fault in {"500 before", "429"}:
            return _ordered(int(fault[:3]))
        if fault == "late held":
            time.sleep(seconds)  # in the thread of this request alone
        return _spoilt(fault, request, forwarded(request, self.server))

    def _take_effect(self, request: Received) -> None:
        with suppress(OSError):
            forwarded(request, self.server)


def _spoilt(fault: str, request: Received, answer: Answer) -> Answer:
    """The answer, after the request had its effect."""
    if fault == "reset after":
        raise ConnectionResetError
    if fault in {"500 after", "503 after"}:
        return _ordered(int(fault[:3]))
    if fault == "cut":
        length = str(len(answer.body))
        headers = {**answer.headers, "content-length": length, "connection": "close"}
        return replace(answer, body=answer.body[: int(length) // 2], headers=headers)
    if fault == "expired":
        return replace(answer, body=_SIGNATURE.sub(rb"\g<1>0000", answer.body))
    if fault == "lag" and "/publications?" in request.target and "page=1" in request.target:
        return Answer({"records": []}, headers={"X-Total": "0"})
    return answer


def _ordered(status: int) -> Answer:
    return Answer(
        {"error": {"code": "Ordered", "message": "slow"}}, status, {"Retry-After": "1"} if status == 429 else {}
    )


class KillingWay(RoughWay):
    """Forwards requests without faults, and kills the process that applies a plan at the first request of a kind."""

    def __init__(self, server: str) -> None:
        super().__init__(server, 0, 0)
        self._process = Queue[BaseProcess]()
        self._kill: tuple[str, str, str] | None = None

    def assert_kills(
        self, config: Path, plan: str, method: str, path: str, moment: str, *, command: str = "apply"
    ) -> None:
        """Apply or undo a plan, killed before the first request of this kind has its effect, or after it, before its response."""
        self._kill = (method, path, moment)
        process = start(carry_out, config, plan, command)
        self._process.put(process)
        process.join()
        assert process.exitcode == -signal.SIGKILL

    def answer(self, request: Received) -> Answer:
        """Forward a request, or kill its sender."""
        with self._lock:
            kill = self._kill
            if kill is None or request.method != kill[0] or not re.search(kill[1], request.target):
                kill = None
            else:
                self._kill = None
        if kill is None:
            return forwarded(request, self.server)
        if kill[2] == "after":
            forwarded(request, self.server)
        self._process.get().kill()
        raise ConnectionResetError
