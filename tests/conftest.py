"""What holds for every test: the order; no deadlines, since a busy machine is no finding; nobody's sign-ins are touched."""

from __future__ import annotations

import gc
import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import httpx._config
import pytest
from hypothesis import HealthCheck, settings

from pipelines.state import leases
from tests.postgres import postgres_server
from tests.sandbox.process import SandboxProcess
from tests.state_places import Place, postgres_place

# A slow machine is no finding. Each run of the suite tries other examples, so thirty will do. In CI the same ones come every time: new ones
# are found where somebody can look at them.
settings.register_profile(
    "patient",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
    max_examples=30,
)
settings.load_profile("patient")

for _phase in ("connect", "read", "write", "pool"):  # httpx's five seconds would be a finding about the machine, too
    setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, _phase, 60.0)


def pytest_configure() -> None:
    """`nohup make test &` in a script: its shell has SIGINT ignored, and each process that a test starts would ignore Ctrl-C, too.

    A program that replaces a process keeps what is ignored, and forgets what is handled. So a handler that does nothing takes its place.
    """
    gc.disable()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda _number, _frame: None)


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: looking for garbage among them took each process of tests a quarter of its start."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with long tests begin, those that may take longest first, so that none runs alone at the end while the other processes wait."""
    seconds: dict[Path, float] = defaultdict(float)
    for item in items:
        if item.get_closest_marker("long"):
            timeout = item.get_closest_marker("timeout")
            limit = timeout.args[0] if timeout else float(item.config.getini("timeout"))
            seconds[item.path] = max(seconds[item.path], limit)
    items.sort(key=lambda item: -seconds[item.path])


@pytest.fixture(scope="session")
def shared_sandbox() -> Iterator[SandboxProcess]:
    """One sandbox for all tests of a process that change no record: a library of real ones, and an empty one."""
    tenants = ("--tenant=library=real:120", "--tenant=bare=empty")
    options = ("--requests-per-minute", "0", "--oauth", "registrations_per_day=100000")
    with SandboxProcess(*tenants, *options) as process:
        yield process


@pytest.fixture
def sandbox(shared_sandbox: SandboxProcess) -> SandboxProcess:
    """The `shared_sandbox` as it began, without a limit; earlier sign-ins are over."""
    shared_sandbox.reset()
    shared_sandbox.control("POST", "oauth/grants/end", {"tenant": "library"})
    return shared_sandbox


@pytest.fixture(scope="session")
def state_server() -> Iterator[str]:
    """The address of a Postgres server for shared state; it starts with the first test that asks."""
    with postgres_server() as address:
        yield address


@pytest.fixture(params=["file", pytest.param("database", marks=pytest.mark.long)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Each place of the state in turn."""
    if request.param == "file":
        yield Place(tmp_path / "state.db")
        return
    with postgres_place(request.getfixturevalue("state_server")) as database_place:
        yield database_place


@pytest.fixture
def shared_place(state_server: str) -> Iterator[Place]:
    """A database."""
    with postgres_place(state_server) as database_place:
        yield database_place


@pytest.fixture
def quick_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, the lease of a holder that is gone ends sooner; those of other processes beat as they do for people."""
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.2)
    monkeypatch.setattr(leases, "SILENCE_SECONDS", 1.5)


@pytest.fixture(scope="session", autouse=True)
def no_sign_in_of_a_person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test, nor any process that it starts, touches the sign-ins that somebody has on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield
