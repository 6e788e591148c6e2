"""Several processes with one sign-in, tokens of two seconds, the strictest policy; and then somebody kills them (I3).

The suite works a few seconds; BOOKFERRY_TEST_SECONDS makes it longer.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from multiprocessing.process import BaseProcess

import pytest

from pipelines.errors import BookferryError
from tests.sandbox.process import SandboxProcess
from tests.service.sign_in.home import SECONDS, Home

pytestmark = pytest.mark.long


DURATION = float(os.environ.get("BOOKFERRY_TEST_SECONDS", "6"))
PROCESSES = 4
SIGN_IN, NO_PAGE = 4, 9


def work(home: Home, seconds: float) -> None:
    """Reads pages until the time is over, slowly enough: the service records only its last 1,000 requests."""
    until, pages = time.monotonic() + seconds, 0
    try:
        with home.client() as client:
            while time.monotonic() < until:
                pages += client.get(f"{client.api_url}/publications").status_code == 200
                time.sleep(seconds / 150)
    except BookferryError as error:
        (home.folder / f"said-{os.getpid()}").write_text(str(error))
        sys.exit(int(error.exit_status))
    sys.exit(0 if pages else NO_PAGE)


@pytest.fixture
def short_lived(home: Home, sandbox: SandboxProcess) -> Home:
    """Signed in, with tokens that live two seconds, at a service that ends everything if a refresh token is used twice."""
    sandbox.change(oauth={"refresh_policy": "strict", "access_token_seconds": 2})
    home.sign_in()
    return home


def test_four_processes_share_one_sign_in(short_lived: Home, sandbox: SandboxProcess) -> None:
    """Nobody is signed out, and each refresh token is used once: a second use would have ended the sign-in."""
    processes = [short_lived.start(work, DURATION) for _ in range(PROCESSES)]
    for process in processes:
        process.join(SECONDS + DURATION)
        assert process.exitcode == 0
    refreshed = short_lived.grant.refreshes
    assert refreshed >= 1
    statuses = Counter(request["status"] for request in sandbox.requests() if request["path"].endswith("/oauth/token"))
    assert statuses == {200: refreshed + 1}, "the sign-in itself was one request of that kind"


def test_four_processes_survive_kills(short_lived: Home, sandbox: SandboxProcess) -> None:
    """Kill -9 every second. The sign-in survives, unless a response was really lost: then every process says just that."""
    pick, crew = random.Random(1), [short_lived.start(work, DURATION) for _ in range(PROCESSES)]
    until, killed, over = time.monotonic() + DURATION, 0, list[str]()
    try:
        while time.monotonic() < until and not over:
            time.sleep(0.5 + pick.random())
            victim = pick.randrange(PROCESSES)
            crew[victim].kill()
            killed += 1
            over += _ended(short_lived, crew[victim])
            crew[victim] = short_lived.start(work, max(0.1, until - time.monotonic()))
    finally:
        for process in crew:
            over += _ended(short_lived, process)
    assert killed >= 1
    if over:
        assert all("is over" in message and "bookferry login new" in message for message in over), over
        assert _lost_an_answer(sandbox, short_lived)
    else:
        assert short_lived.read().status_code == 200


def _ended(home: Home, process: BaseProcess) -> list[str]:
    """Waits for a process; returns its message if a person must sign in."""
    process.join(SECONDS + DURATION)
    assert process.exitcode in (0, -signal.SIGKILL, SIGN_IN, NO_PAGE)
    return [(home.folder / f"said-{process.pid}").read_text()] if process.exitcode == SIGN_IN else []


def _lost_an_answer(sandbox: SandboxProcess, home: Home) -> bool:
    """Whether the service issued tokens that never arrived: it has more refreshes than we know of, and then refused one."""
    statuses = [request["status"] for request in sandbox.requests() if request["path"].endswith("/oauth/token")]
    return statuses[-1] == 400 and home.stored.ended is not None
