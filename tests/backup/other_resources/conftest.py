"""A sandbox with two libraries, and a desk from which version 3 of one is backed up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.backup.flow import Backup, checked_resources
from pipelines.service.client import Waiting
from pipelines.store.snapshots.snapshots import Snapshot
from tests.backup.other_resources.signing import READ, keep_token, sign_in
from tests.sandbox.process import SandboxProcess
from tests.service.scripted import Answer, Received, Script, ScriptedServer

RECORDS = 120

CONFIG = """
data = "library-data"
tokens = "sign-ins"

[tenants.new]
base_url = "{base_url}"
api = "v3"
client_id = "test"
client_auth = "none"
requests_per_minute = 100000
{more}

[tenants.old]
base_url = "{base_url}"
api = "v2"
username_env = "TEST_USER"
password_env = "TEST_PASSWORD"
requests_per_minute = 100000
"""


@pytest.fixture(scope="session")
def shared_sandbox() -> Iterator[SandboxProcess]:
    """One process for all tests; use `sandbox`."""
    with SandboxProcess(f"--tenant=library=real:{RECORDS}", "--requests-per-minute", "0") as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(shared_sandbox: SandboxProcess, monkeypatch: pytest.MonkeyPatch) -> SandboxProcess:
    """The library without liberties, faults and counts; the account of version 2 is in the environment."""
    shared_sandbox.reset()
    shared_sandbox.change(requests_per_minute=0)
    monkeypatch.setenv("TEST_USER", shared_sandbox.user)
    monkeypatch.setenv("TEST_PASSWORD", shared_sandbox.password)
    return shared_sandbox


@dataclass
class Desk:
    """A folder with a configuration of the tenant `new` (v3) and `old` (v2) of one library."""

    config: Path

    @classmethod
    def at(cls, folder: Path, base_url: str, more: str = "") -> Desk:
        """Write the configuration."""
        config = folder / "bookferry.toml"
        config.write_text(CONFIG.format(base_url=base_url, more=more))
        return cls(config)

    def library(self, asked: tuple[str, ...] = (), waits: list[Waiting] | None = None) -> Backup:
        """A library of its own, as each run has one."""
        settings = Backup.open(self.config).settings
        return Backup(settings, asked=asked, on_wait=(waits if waits is not None else []).append)

    def back_up(self, *wanted: str, tenant: str = "new", run: str = "run") -> Snapshot:
        """A backup of the resources that are wanted by name, or of every night's."""
        with self.library(wanted) as library:
            resources = checked_resources(library.settings.tenant(tenant), wanted)
            for resource in resources:
                library.read_raw(tenant, run, resource)
            for resource in resources:
                library.stage(tenant, run, resource)
            if "publications" in resources:
                library.fetch_files(tenant, run)
            return library.publish(tenant, run)

    def sign_in(self, sandbox: SandboxProcess, scopes: tuple[str, ...] = READ) -> str:
        """Sign in to the sandbox; the token."""
        return sign_in(self.config, "new", sandbox, scopes=scopes)


@pytest.fixture
def desk(sandbox: SandboxProcess, tmp_path: Path) -> Desk:
    """A desk that is signed in with every scope that reads."""
    desk = Desk.at(tmp_path, sandbox.base_url())
    desk.sign_in(sandbox)
    return desk


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., tuple[Desk, ScriptedServer]]]:
    """A service of the test's own, and a desk that is signed in to it."""
    with ExitStack() as stack:

        def start(script: Script, more: str = "") -> tuple[Desk, ScriptedServer]:
            server = stack.enter_context(ScriptedServer(lambda request: _no_asset(request) or script(request)))
            desk = Desk.at(tmp_path, server.url, more)
            keep_token(desk.config, "new", "a-token-that-occurs-nowhere-else")
            return desk, server

        yield start


def _no_asset(request: Received) -> Answer | None:
    """None of these services tells of an asset by itself."""
    return Answer({"error": {"code": "RecordNotFound"}}, status=404) if "/assets/" in request.path else None


def rows(snapshot: Snapshot, table: str) -> list[dict[str, Any]]:
    """Rows of a table of a snapshot."""
    found: list[dict[str, Any]] = pq.read_table(snapshot.path / snapshot.manifest.tables[table].path).to_pylist()
    return found
