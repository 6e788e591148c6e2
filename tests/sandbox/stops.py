"""Stops the sandbox in every state in which a signal may find it: `python -m tests.sandbox.stops 200`, or a few of them in the suite.

Each stop is one or two signals, SIGTERM or SIGINT, as a person, a service manager or `timeout` (always two) sends them. Nothing but the
signal may end the process, so every state that this module makes lasts for hours.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

_ROOT = Path(__file__).parents[2]
PATIENCE = 100
"""Seconds until a process counts as one that does not end. On an idle machine a stop takes less than one."""

EMPTY = ("--tenant", "library=empty", "--requests-per-minute", "0")
SANDBOX = (sys.executable, "-m", "sandbox", "--port", "0")
BOOKFERRY = (sys.executable, "-m", "cli.main", "sandbox", "--json", "--port", "0")
"""The command line first, which replaces itself by the sandbox."""

ENDED = {0}
BEFORE_IT_LISTENS = ENDED | {130, 143, -signal.SIGINT, -signal.SIGTERM}
"""Python itself, or the command line, may be the one that hears a signal during the imports."""

Started = Callable[["Stop"], None]


@dataclass
class Stop:
    """One process on its way to a state."""

    process: subprocess.Popen[bytes]
    random: random.Random
    stack: ExitStack
    ready: Mapping[str, Any]

    @property
    def http(self) -> httpx.Client:
        """A client of the library's version 2."""
        library = self.ready["tenants"]["library"]
        client = httpx.Client(
            base_url=f"{library['base_url']}/api/v2",
            auth=(library["user"], library["password"]),
            transport=httpx.HTTPTransport(verify=False),
        )
        return self.stack.enter_context(client)

    def control(self, path: str, body: object) -> None:
        """Sends a request to the control endpoint."""
        self.http.post(f"{self.ready['control']}/{path}", json=body).raise_for_status()

    def send(self, address: str, request: str) -> socket.socket:
        """Sends a request and does not wait for the response."""
        parts = urlsplit(address)
        connection = self.stack.enter_context(socket.create_connection((parts.hostname, parts.port)))
        connection.sendall(f"{request}\r\nHost: {parts.netloc}\r\n\r\n".encode())
        return connection


@contextmanager
def started(
    command: tuple[str, ...], seed: float | None = None, *, wait: bool = True, **options: Any
) -> Iterator[Stop]:
    """Starts a sandbox and waits for its ready line."""
    process = subprocess.Popen(command, cwd=_ROOT, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options})
    try:
        with ExitStack() as stack:
            ready = json.loads(process.stdout.readline()) if wait and process.stdout else {}
            yield Stop(process, random.Random(seed), stack, ready)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def end(stop: Stop, allowed: set[int]) -> None:
    """Sends one or two signals and waits for the end."""
    signals = stop.random.choices((signal.SIGTERM, signal.SIGINT), k=stop.random.choice((1, 2)))
    gap = stop.random.uniform(0, 0.0006)  # the second one finds the first one at work
    for signum in signals:
        stop.process.send_signal(signum)
        asked = time.perf_counter()
        while time.perf_counter() - asked < gap:
            pass
    try:
        status = stop.process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"it still runs {PATIENCE} seconds after {signals}, {gap * 1e6:.0f} µs apart") from None
    assert status in allowed, f"status {status} after {signals}"


def while_nothing_happens(seed: float) -> None:
    """It waits for requests."""
    with started((*SANDBOX, *EMPTY), seed) as stop:
        end(stop, ENDED)


def with_a_closed_pipe(seed: float) -> None:
    """`bookferry sandbox 2>&1 | head -c 300`: the reader has gone, and requests fail, which goes to stderr."""
    ours, theirs = os.pipe()
    with (
        closing(os.fdopen(ours, "rb")) as reader,
        started((*BOOKFERRY, *EMPTY), seed, wait=False, stdout=theirs, stderr=theirs) as stop,
    ):
        os.close(theirs)
        stop.ready = json.loads(reader.readline())
        reader.close()
        for kind in ("reset", "cut"):
            stop.control("faults", {"fault": kind, "times": 5, "match": {"path": kind}})
            for _ in range(5):
                connection = stop.send(stop.ready["url"], f"GET /library/api/v2/publications?{kind} HTTP/1.1")
                with suppress(ConnectionResetError):
                    connection.recv(1)
        end(stop, ENDED)


def with_a_pipe_that_nobody_reads(seed: float) -> None:
    """The write of the ready line does not return: the pipe is full."""
    ours, theirs = os.pipe()
    with closing(os.fdopen(ours, "rb")), closing(os.fdopen(theirs, "wb", buffering=0)) as writer:
        os.set_blocking(theirs, False)
        while writer.write(b"x" * 4096):
            pass
        while writer.write(b"x"):
            pass
        os.set_blocking(theirs, True)
        with started((*SANDBOX, *EMPTY), seed, wait=False, stdout=theirs) as stop:
            _wait_until_it_writes(stop.process.pid)
            end(stop, ENDED)


def _wait_until_it_writes(pid: int) -> None:
    """Waits until a thread of the process is blocked in a pipe's write."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            if "pipe_write" in (thread / "wchan").read_text():
                return
            if (thread / "syscall").read_text().split()[:2] == ["1", "0x1"]:  # write, to stdout
                return
    raise AssertionError("it never wrote the ready line")


def during_requests(seed: float) -> None:
    """Some requests hang, others come in all the time."""
    with started((*SANDBOX, *EMPTY), seed) as stop:
        stop.control("faults", {"fault": "hang", "seconds": 10_000, "times": 3, "match": {"path": "hang"}})
        for _ in range(3):
            stop.send(stop.ready["url"], "GET /library/api/v2/publications?hang HTTP/1.1")
        for _ in range(stop.random.randrange(5)):
            stop.send(stop.ready["url"], "GET /library/api/v2/swagger.yaml HTTP/1.1")
        stop.send(
            stop.ready["url"], "POST /library/api/v2/publications HTTP/1.1\r\nContent-Length: 9"
        )  # no body follows
        end(stop, ENDED)


def during_faults(seed: float) -> None:
    """A response that is cut, garbled, reset or late, with each request's traceback on its way to stderr."""
    with started((*SANDBOX, *EMPTY, "--latency", "0.001"), seed) as stop:
        for kind in ("cut", "garble", "reset", "status"):
            stop.control("faults", {"fault": kind, "times": 20, "match": {"path": kind}})
        for number in range(40):
            kind = ("cut", "garble", "reset", "status")[number % 4]
            stop.send(stop.ready["url"], f"GET /library/api/v2/publications?{kind} HTTP/1.1")
        end(stop, ENDED)


def during_a_slow_download(seed: float) -> None:
    """The client reads a part of a large file and no more, so that the sandbox is blocked in its write.

    The temporary folder of uploads is removed, too.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        started((*SANDBOX, *EMPTY), seed, env={**os.environ, "TMPDIR": folder}) as stop,
    ):
        http = stop.http
        publication = http.post("/publications", json={"title": "Slow"}).json()["id"]
        form = http.get("/assets/presign").json()
        parts = {**{name: (None, value) for name, value in form["fields"].items()}, "file": ("f", bytes(32 << 20))}
        httpx.post(form["url"], files=parts, verify=False).raise_for_status()
        file = {"id": form["fields"]["key"].removeprefix("cache/"), "storage": "cache"}
        url = http.post("/assets", json={"publication_id": publication, "file": file}).json()["url"]
        parts_of_url = urlsplit(url)
        download = stop.send(url, f"GET {parts_of_url.path}?{parts_of_url.query} HTTP/1.1")
        assert b" 200 " in download.recv(100)
        stop.send(stop.ready["url"], "GET /library/api/v2/publications HTTP/1.1")
        assert list(Path(folder).iterdir())
        end(stop, ENDED)
        assert list(Path(folder).iterdir()) == []


def during_the_start(seed: float) -> None:
    """At a random moment: in the imports, while it fills the library, or shortly after the ready line."""
    with started((*SANDBOX, "--tenant", "library=real"), seed, wait=False) as stop:
        time.sleep(stop.random.uniform(0, 1.5))
        end(stop, BEFORE_IT_LISTENS)


def during_the_start_of_the_command(seed: float) -> None:
    """The same for the command line, until it has replaced itself and later."""
    with started((*BOOKFERRY, "--tenant", "library=real"), seed, wait=False) as stop:
        time.sleep(stop.random.uniform(0.1, 2.5))
        end(stop, BEFORE_IT_LISTENS)


def while_it_fills_a_state_file(seed: float) -> None:
    """A long start: it would take minutes. The file can be used afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state.db"
        command = (*SANDBOX, "--tenant", "library=real:1000000", "--state", str(state))
        with started(command, seed, wait=False) as stop:
            while not state.with_name("state.db-wal").exists():
                assert stop.process.poll() is None
            time.sleep(stop.random.uniform(0, 0.5))
            end(stop, ENDED)
        with started((*SANDBOX, *EMPTY, "--state", str(state)), seed) as stop:
            assert stop.ready["tenants"]["library"]["publications"] == 0
            end(stop, ENDED)


STATES: tuple[Callable[[float], None], ...] = (
    while_nothing_happens,
    with_a_closed_pipe,
    with_a_pipe_that_nobody_reads,
    during_requests,
    during_faults,
    during_a_slow_download,
    during_the_start,
    during_the_start_of_the_command,
    while_it_fills_a_state_file,
)


def main() -> None:
    """Stops as often as the argument says, over all states, and prints the figures."""
    wanted = int(sys.argv[1])
    ended: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for number in range(wanted):
        state = STATES[number % len(STATES)]
        try:
            state(number)
            ended[state.__name__] += 1
        except AssertionError as error:
            failed[state.__name__] += 1
            print(f"{state.__name__}({number}): {error}")  # noqa: T201
    for state in STATES:
        print(f"{state.__name__:<36} ended {ended[state.__name__]:>3}  failed {failed[state.__name__]:>3}")  # noqa: T201
    print(f"{'all':<36} ended {ended.total():>3}  failed {failed.total():>3}")  # noqa: T201


if __name__ == "__main__":
    main()
