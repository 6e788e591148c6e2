"""Progress: a bar on a terminal, elsewhere a line from time to time, with correct numbers at every moment."""

from __future__ import annotations

import os
import pty
import re
import signal
import struct
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import pytest

from cli.progress import ProgressDisplay
from pipelines.backup.read import Progress
from pipelines.service.client import Waiting
from tests.cli.command import PATIENCE, Installation
from tests.cli.terminal import drawn, read
from tests.sandbox.process import SandboxProcess


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Tell it."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def display(clock: Clock) -> ProgressDisplay:
    return ProgressDisplay(clock)


def _at(records: int, requests: int) -> Progress:
    return Progress("publications", records, 6000, requests, (6000 - records) / 50)


@pytest.mark.parametrize(
    ("seconds", "records", "requests", "ending"),
    [(100, 500, 10, "5/s, 10 requests, 18 min 20 s left"), (10, 3000, 60, ", 1 min 0 s left")],
    ids=["a slower service", "the budget"],
)
def test_time_left(
    display: ProgressDisplay, clock: Clock, seconds: int, records: int, requests: int, *, ending: str
) -> None:
    """At 5 records a second 5,500 are 18 minutes; sixty pages are a minute of the budget, which counts down while nothing comes."""
    display.progress(_at(50, 1))
    clock.now += seconds
    display.progress(_at(records, requests))
    assert display.numbers.endswith(ending)
    if records == 3000:
        clock.now += 20
        assert display.numbers.endswith(", 40 s left")
        clock.now += 40
        assert display.numbers.endswith("60 requests"), "no promise that has been broken"


def test_a_wait_without_progress_is_shown_and_counts_down(display: ProgressDisplay, clock: Clock) -> None:
    """But not while pages that were asked for still come, nor once it is over."""
    display.progress(_at(3000, 60))
    display.waiting(Waiting("the budget is used up", 57))
    pauses = [display.pause]
    for seconds in (2, 50):
        clock.now += seconds
        pauses.append(display.pause)
    display.progress(_at(3050, 61))
    clock.now += 50
    assert [*pauses, display.pause] == ["", *(f"waiting {left} s: the budget is used up" for left in (55, 5)), ""]


@pytest.fixture(scope="module")
def slow() -> Iterator[SandboxProcess]:
    """Ten pages that take more than ten seconds."""
    with SandboxProcess("--tenant=slow=real:500", "--latency", "0.2", "--requests-per-minute", "0") as sandbox:
        yield sandbox


@pytest.mark.long
def test_a_terminal_shows_a_bar_and_then_the_result(slow: SandboxProcess, tmp_path: Path) -> None:
    """The bar is drawn in its place and wiped away; only the answer stays. Nothing of Dagster's is on the terminal."""
    installation = Installation.make(tmp_path, slow, "slow")
    status, output = _on_a_terminal(installation, 100)
    assert status == 0
    assert re.search(r"publications [━╸╺]+ ([0-9]+ of 500, [0-9]+/s|500 read), [0-9]+ requests", drawn(output))
    *notes, files, report, path, last = _left(output)
    assert any("import_state" in note for note in notes)
    assert "file" in files
    assert Path(report.partition(": ")[2]).is_file()
    assert Path(path).is_dir()
    assert last.startswith("Complete: 500 publications; 10 requests, ")
    assert "dagster" not in re.sub(re.escape(str(tmp_path)), "", output).lower()
    assert output.count("\x1b[?25l") == output.count("\x1b[?25h"), "the cursor is shown again"


@pytest.mark.long
def test_a_terminal_shows_the_wait_and_is_tidy_after_ctrl_c(slow: SandboxProcess, tmp_path: Path) -> None:
    installation = Installation.make(tmp_path, slow, "slow", requests_per_minute=3)
    status, output = _on_a_terminal(installation, 100, until=r"waiting [0-9]+ s: the budget is used up")
    assert status == 130
    (last,) = _left(output)
    assert last.startswith("error: Stopped before the end.")
    assert output.count("\x1b[?25l") == output.count("\x1b[?25h"), "the cursor is shown again"


@pytest.mark.long
def test_a_log_gets_a_line_from_time_to_time(slow: SandboxProcess, tmp_path: Path) -> None:
    """What was read, what is left, and why nothing moves; while it starts, only that."""
    installation = Installation.make(tmp_path, slow, "slow", requests_per_minute=3)
    process = installation.start("backup", "slow")
    assert process.stderr is not None
    lines = []
    while not lines or "waiting" not in lines[-1]:
        lines.append(process.stderr.readline())
        assert lines[-1], lines
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert re.fullmatch(
        r"publications: 1[05]0 of 500, [0-9]+/s, 3 requests, [0-9a-z ]+ left, waiting [0-9a-z ]+: the budget is used up\n",
        lines[-1],
    )
    assert [line for line in lines if not re.match(r"starting$|publications: [0-9]+ of 500, ", line)] == []


def _on_a_terminal(installation: Installation, width: int, until: str | None = None) -> tuple[int, str]:
    """Run a backup on a new terminal, and press Ctrl-C when `until` appears. Returns its status and its output."""
    master, terminal = pty.openpty()
    ioctl(terminal, TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    process = installation.start(
        "backup",
        installation.tenant,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        preexec_fn=lambda: _own_terminal(terminal),
    )
    os.close(terminal)
    output = b""
    while chunk := read(master):
        output += chunk
        if until and re.search(until, output.decode(errors="ignore")):
            os.write(master, b"\x03")
            until = None
    os.close(master)
    return process.wait(PATIENCE), output.decode()


def _own_terminal(descriptor: int) -> None:
    os.setsid()
    os.close(os.open(os.ttyname(descriptor), os.O_RDWR))  # the first terminal that a session opens is its own
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _left(output: str) -> list[str]:
    """The lines that stay on the screen after the bar was wiped away."""
    _wiped, _, after = output.rpartition("\x1b[2K")
    return [line for line in drawn(after).split("\r\n") if line.strip()]
