"""A refresh is completed although the program is stopped: its response comes only once (I3)."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from tests.sandbox.process import SandboxProcess
from tests.service.sign_in.home import SECONDS, Home

pytestmark = pytest.mark.long


def read(home: Home) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    home.read()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_in_the_middle_of_a_refresh_loses_nothing(
    home: Home, sandbox: SandboxProcess, number: signal.Signals
) -> None:
    """Ctrl-C and SIGTERM while the server works: the process stops, and the response is stored."""
    home.sign_in()
    sandbox.fault("jump", seconds=4000, path="/publications")
    sandbox.fault("hang", seconds=3, path="/oauth/token")
    process = home.start(read)
    until = time.monotonic() + SECONDS
    while home.stored.refreshing_since is None and home.grant.refreshes == 0:
        assert time.monotonic() < until
        assert process.exitcode is None
        time.sleep(0.01)
    os.kill(process.pid or 0, number)
    process.join(SECONDS)
    assert process.exitcode in {1, 143}
    assert (home.grant.refreshes, home.stored.refreshing_since) == (1, None)
    assert home.read().status_code == 200
    assert home.grant.refreshes == 1
