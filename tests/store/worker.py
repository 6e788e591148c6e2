"""A process that makes snapshots on request, and is killed at a given call.

`python -m tests.store.worker DATA` reads and writes one JSON object per line. For each it forks a child that makes a snapshot, so that a
hundred kills need one start of Python. It does nothing else itself: a process without threads can be forked safely.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any, Self
from zoneinfo import ZoneInfo

import duckdb  # noqa: F401  what children need is imported before they are forked
import pandas as pd  # noqa: F401
import pyarrow.parquet  # noqa: F401

from pipelines.settings.retention_and_notify import RetentionSettings
from pipelines.store.catalogue import rebuild_catalogue
from pipelines.store.maintenance.retention import prune
from pipelines.store.snapshots.snapshots import DataFolder
from tests.store.snapshot_factory import STARTED_AT, make_snapshot_and_catalogue, publication_payloads

_ROOT = Path(__file__).parents[2]
_WRITERS = (str(_ROOT / "pipelines" / "store"), str(_ROOT / "pipelines" / "backup"))
"""The folders whose calls are counted."""


class CallCounter:
    """Counts the calls by the project's own code, C functions included, and kills this process before call `kill_at` (kill -9)."""

    def __init__(self, kill_at: int) -> None:
        self._kill_at = kill_at
        self.count = 0

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """The hook of `sys.setprofile`."""
        if event in ("call", "c_call") and frame.f_code.co_filename.startswith(_WRITERS):
            self.count += 1
            if self.count == self._kill_at:
                os.kill(os.getpid(), signal.SIGKILL)


def _child(data: DataFolder, order: dict[str, Any]) -> dict[str, Any]:
    if "rebuild" in order:
        for _ in range(order["rebuild"]):
            rebuild_catalogue(data)
        return {}
    day, counter = int(order.get("day", 0)), CallCounter(int(order.get("kill_at", 0)))
    if "prune" in order:
        sys.setprofile(counter)
        prune(data, [], RetentionSettings(keep_last=order["prune"]), ZoneInfo("UTC"), tenant=None, dry_run=False)
        sys.setprofile(None)
        return {"calls": counter.count}
    payloads = publication_payloads(order.get("records", 5), first=1000 * day + 1)
    sys.setprofile(counter)
    snapshot = make_snapshot_and_catalogue(data, payloads, now=STARTED_AT + timedelta(days=day))
    sys.setprofile(None)
    return {"snapshot": snapshot.name, "calls": counter.count}


def _serve(data: DataFolder, order: dict[str, Any]) -> dict[str, Any]:
    parent_end, child_end = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.write(child_end, json.dumps(_child(data, order)).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(child_end)
    with os.fdopen(parent_end, "rb") as pipe:
        reply = pipe.read()
    _pid, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return {"exit": code, **(json.loads(reply) if reply else {})}


def main() -> None:
    """Serve requests until standard input ends."""
    data = DataFolder(Path(sys.argv[1]))
    for line in sys.stdin:
        print(json.dumps(_serve(data, json.loads(line))), flush=True)  # noqa: T201  the answer


class Worker:
    """The process, for the length of a `with` block."""

    def __init__(self, data: Path) -> None:
        self._command = [sys.executable, "-m", "tests.store.worker", str(data)]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __call__(self, **order: object) -> dict[str, Any]:
        """Make a snapshot: `day`, `records`, `kill_at` a call.

        Or rebuild the catalogue, `rebuild` times, or remove all but the newest `prune` snapshots.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


if __name__ == "__main__":
    main()
