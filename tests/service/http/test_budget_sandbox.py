"""I1 with the whole client in real processes, counted by the service that receives the requests."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sandbox.process import SandboxProcess
from tests.service.conftest import PASSWORD, USER

pytestmark = pytest.mark.long


LIMIT = 120
PROCESSES = 4

READER = f"""
    import sys, threading
    from pathlib import Path
    from pipelines.errors import BookferryError
    from pipelines.service.client import open_client
    from pipelines.settings.config_file import load_settings
    from pipelines.state.local import LocalState

    def say(text):
        sys.stdout.write(text + "\\n")  # in one piece: several threads talk
        sys.stdout.flush()

    def read_for_ever(client):
        client.get(f"{{client.api_url}}/publications")
        say("reading")
        while True:
            client.get(f"{{client.api_url}}/publications", {{"per_page": 1}})

    def tell(wait):
        say(f"waiting {{wait.seconds:.0f}} {{wait.reason}}")

    settings = load_settings(Path(sys.argv[1]))
    with open_client(settings, "library", state=LocalState(Path(sys.argv[2])), on_wait=tell) as client:
        threads = [threading.Thread(target=read_for_ever, args=(client,), daemon=True) for _ in range({PROCESSES})]
        say("ready")
        sys.stdin.readline()
        for thread in threads:
            thread.start()
        sys.stdin.read()
"""


@pytest.fixture
def limited_sandbox() -> Iterator[SandboxProcess]:
    """A service that refuses requests beyond the limit, and counts what it receives."""
    with SandboxProcess("--requests-per-minute", str(LIMIT), "--tenant", "library=real:50") as sandbox:
        yield sandbox


@pytest.fixture
def start_reader(
    limited_sandbox: SandboxProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts a process that sends requests as fast as the budget allows, in four threads."""
    monkeypatch.setenv("TEST_USER", USER)
    monkeypatch.setenv("TEST_PASSWORD", PASSWORD)
    config = tmp_path / "bookferry.toml"
    config.write_text(
        f'[tenants.library]\nbase_url = "{limited_sandbox.base_url()}"\napi = "v2"\nusername_env = "TEST_USER"\n'
        f'password_env = "TEST_PASSWORD"\nrequests_per_minute = {LIMIT}\n'
    )
    command = [sys.executable, "-c", textwrap.dedent(READER), str(config), str(tmp_path / "state.db")]
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def let_go(*processes: subprocess.Popen[str]) -> float:
    """Let the processes begin when all of them are ready; returns the time."""
    for process in processes:
        assert next_line(process) == "ready\n"
    begun = time.monotonic()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return begun


def next_line(process: subprocess.Popen[str]) -> str:
    """Returns the next line of the process: that it is reading, or that its budget is used up. Empty after minutes of silence."""
    assert process.stdout is not None
    guard = threading.Timer(200, process.kill)
    guard.start()
    try:
        return process.stdout.readline()
    finally:
        guard.cancel()


def seconds_to_wait(process: subprocess.Popen[str]) -> int:
    """Returns how long the process will wait for its next request: until a minute after the first request, if it keeps the limit."""
    while (line := next_line(process)) == "reading\n":
        pass
    word, seconds, reason = line.rstrip().split(maxsplit=2)
    assert (word, reason) == ("waiting", "the budget is used up")
    return int(seconds)


def test_four_processes_never_exceed_the_limit(
    limited_sandbox: SandboxProcess, start_reader: Callable[[], subprocess.Popen[str]]
) -> None:
    """I1: four real processes, of four threads each, want more than a minute's budget at once.

    They get all of it and no request more, without a single 429; the next run on the same data folder finds it used up.
    """
    processes = [start_reader() for _ in range(PROCESSES)]
    begun = let_go(*processes)
    for process in processes:
        assert seconds_to_wait(process) >= 59 - (time.monotonic() - begun)

    until = time.monotonic() + 40
    while limited_sandbox.counts()["requests"] < LIMIT and time.monotonic() < until:
        pass  # the last slots were taken, their requests are on the way
    assert limited_sandbox.counts() == {"requests": LIMIT, "largest_window": LIMIT, "throttled": 0}

    for process in processes:
        process.kill()
        process.wait()
    let_go(late := start_reader())
    waits = seconds_to_wait(late)
    assert 59 - (time.monotonic() - begun) <= waits <= 61
    counts = limited_sandbox.counts()
    assert (counts["largest_window"], counts["throttled"]) == (LIMIT, 0)
    assert counts["requests"] == LIMIT or time.monotonic() - begun > 59
