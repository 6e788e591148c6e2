"""Ctrl-C and SIGTERM during a backup: a quick end, one line, nothing published, and the next backup works (I5, I9)."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import PATIENCE, Installation
from tests.cli.conftest import BackedUp

HOURS = 10_000
"""Seconds that the service takes for an answer."""

SAID = "Stopped before the end. No snapshot is published in part, and the last good one is untouched"


def _end(process: subprocess.Popen[str], number: signal.Signals) -> tuple[str, str]:
    """Send a signal, to all of its group where it leads one; stdout and stderr. Without the stop it would take hours to the end."""
    if os.getpgid(process.pid) == process.pid:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    return process.communicate(timeout=PATIENCE)


def _starting(process: subprocess.Popen[str], _home: Installation) -> None:
    """At the beginning of its imports: it listens to SIGTERM, which it has not begun to handle."""
    while True:
        handled = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text())
        if handled and int(handled[1], 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.01)


def _waiting_for_an_answer(_process: subprocess.Popen[str], installation: Installation) -> None:
    while installation.sandbox.counts("small")["requests"] < 1:
        time.sleep(0.2)


def _foreground() -> None:
    """A shell's job in the foreground hears Ctrl-C, whatever started the tests; and so does each process that it started."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGTERM, _starting),
        (signal.SIGINT, _waiting_for_an_answer),
        (signal.SIGTERM, _waiting_for_an_answer),
    ],
    ids=lambda value: value.__name__.strip("_") if callable(value) else value.name,
)
def test_a_stop_ends_a_backup_and_leaves_what_was(
    small: BackedUp, number: signal.Signals, moment: Callable[[subprocess.Popen[str], Installation], None]
) -> None:
    """Exit 130 or 143, so that a script tells a stop from a failure. It does not wait for an answer of the service."""
    before = small.snapshots()
    small.sandbox.change("small", latency=HOURS)
    small.sandbox.reset("counts", tenant="small")
    process = small.start("backup", "small", "--json", preexec_fn=_foreground)
    moment(process, small)
    out, err = _end(process, number)
    assert process.returncode == 128 + number
    *progress, last = err.splitlines()
    assert json.loads(out) == {"error": last.removeprefix("error: "), "exit_status": 128 + number}
    assert last.startswith(f"error: {SAID}")
    assert set(progress) <= {"starting"}, "nothing was read; a slow start prints a line every ten seconds"
    assert small.snapshots() == before


@pytest.mark.long
def test_a_stop_while_the_budget_is_used_up(small: BackedUp, tmp_path: Path) -> None:
    """A stop also ends a long wait for the budget, and the next backup works."""
    installation = Installation.make(tmp_path, small.sandbox, "small")
    with installation.no_budget() as wait_for_look:
        process = installation.start("backup", "small", "--json")
        wait_for_look()
        out, _ = _end(process, signal.SIGTERM)
    assert (process.returncode, json.loads(out)["error"][: len(SAID)]) == (143, SAID)
    assert installation.snapshots() == {}
    assert installation.backup("--json").document["complete"] is True


@pytest.mark.long
def test_a_stop_after_publication_leaves_the_snapshot(small: BackedUp) -> None:
    """It is whole. The report and what is staged of it can be made later."""
    before = small.snapshots()
    process = small.start("backup", "small", "--json", preexec_fn=_foreground)
    while len(small.snapshots()) == len(before) and process.poll() is None:
        time.sleep(0.01)
    out, _err = _end(process, signal.SIGTERM)
    document = json.loads(out)
    if process.returncode:  # the report of so few records may be made by now
        assert (process.returncode, document["error"].partition(" ")[0]) == (143, "Stopped")
    assert small.snapshots().items() > before.items(), "a new one, beside the others"


@pytest.mark.long
def test_a_background_job_ignores_the_terminal(small: BackedUp) -> None:
    """`bookferry backup … &` in a script: the shell has SIGINT ignored, and it stays ignored."""
    small.sandbox.change("small", latency=0.5)
    small.sandbox.reset("counts", tenant="small")
    process = small.start("backup", "small", "--json", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    _waiting_for_an_answer(process, small)
    out, _err = _end(process, signal.SIGINT)
    assert (process.returncode, json.loads(out)["complete"]) == (0, True)
