"""A sandbox with one library, and backups of its version 3."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.backup.flow import Backup
from pipelines.store.snapshots.snapshots import Snapshot
from tests.backup.other_resources.signing import READ, keep_token, sign_in
from tests.backup.runner import take_steps
from tests.sandbox.process import SandboxProcess
from tests.service.scripted import Answer, Received, Script, ScriptedServer

Serve = Callable[..., tuple["TwoVersionRunner", ScriptedServer]]
"""Starts a scripted service, and returns signed-in backups of it."""

CONFIG = """
data = "library-data"
tokens = "sign-ins"

[tenants.new]
base_url = "{base_url}"
api = "v3"
client_id = "test"
client_auth = "none"
requests_per_minute = 100000
{tenant_lines}

[tenants.old]
base_url = "{base_url}"
api = "v2"
username_env = "TEST_USER"
password_env = "TEST_PASSWORD"
requests_per_minute = 100000
"""


@dataclass
class TwoVersionRunner:
    """Runs backups with a configuration of one library as two tenants: `new` (v3) and `old` (v2)."""

    config: Path

    @classmethod
    def at(cls, folder: Path, base_url: str, tenant_lines: str = "") -> TwoVersionRunner:
        """Write the configuration."""
        config = folder / "bookferry.toml"
        config.write_text(CONFIG.format(base_url=base_url, tenant_lines=tenant_lines))
        return cls(config)

    def library(self, resources: tuple[str, ...] = ()) -> Backup:
        """A new `Backup`, as each run has one."""
        settings = Backup.open(self.config).settings
        return Backup(settings, asked=resources)

    def back_up(self, *resources: str, tenant: str = "new", run: str = "run", learn: bool = False) -> Snapshot:
        """Run a backup of these resources, or of those of every night. `learn`: asks for the service's description, too."""
        with self.library(resources) as library:
            return take_steps(library, tenant, run, library.resources(tenant), learn=learn)

    def sign_in(self, sandbox: SandboxProcess, scopes: tuple[str, ...] = READ) -> str:
        """Sign in to the sandbox. Returns the token."""
        return sign_in(self.config, "new", sandbox, scopes=scopes)


@pytest.fixture
def runner(sandbox: SandboxProcess, tmp_path: Path) -> TwoVersionRunner:
    """Backups of a user who is signed in with every scope for reading."""
    runner = TwoVersionRunner.at(tmp_path, sandbox.base_url())
    runner.sign_in(sandbox)
    return runner


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts scripted services, and returns signed-in backups of them."""
    with ExitStack() as stack:

        def start(script: Script, tenant_lines: str = "") -> tuple[TwoVersionRunner, ScriptedServer]:
            server = stack.enter_context(ScriptedServer(lambda request: _no_asset(request) or script(request)))
            runner = TwoVersionRunner.at(tmp_path, server.url, tenant_lines)
            keep_token(runner.config, "new", "a-token-that-occurs-nowhere-else")
            return runner, server

        yield start


class Lists:
    """A service with these lists (path → records) by pages, and a description or none. Anything else is 404.

    `refused`: path → the status instead. `before` is told the path and page of each request before its answer.
    `counts`: whether it sends X-Total.
    """

    def __init__(self, lists: Mapping[str, Sequence[Any]], description: bytes | None = None) -> None:
        self.lists, self.description, self.refused = dict(lists), description, dict[str, int]()
        self.before: Callable[[str], object] = lambda _name: None
        self.counts = True

    def __call__(self, request: Received) -> Answer:
        """The answer to one request."""
        path, page, size = request.path[len("/api/v3/") :], request.query.get("page"), request.query.get("per_page")
        self.before(f"{path}?{page}")
        if path == "swagger.yaml" and self.description is not None:
            return Answer(self.description, headers={"content-type": "application/yaml"})
        if path not in self.lists or path in self.refused:
            error = {"error": {"code": "RecordNotFound", "message": "not found"}}
            return Answer(error, status=self.refused.get(path, 404))
        records, first = self.lists[path], (int(page or 1) - 1) * int(size or 25)
        return Answer(
            {"records": records[first : first + int(size or 25)]},
            headers={"X-Total": str(len(records))} if self.counts else {},
        )


def _no_asset(request: Received) -> Answer | None:
    """These services have no assets of their own."""
    return Answer({"error": {"code": "RecordNotFound"}}, status=404) if "/assets/" in request.path else None


def rows(snapshot: Snapshot, table: str) -> list[dict[str, Any]]:
    """Rows of a table of a snapshot, without the names of library and snapshot, which end each row of a staged table."""
    entries: list[dict[str, Any]] = pq.read_table(snapshot.path / snapshot.manifest.tables[table].path).to_pylist()
    if not table.startswith("raw_"):
        place = {(row.pop("tenant"), row.pop("snapshot")) for row in entries}
        assert place <= {(snapshot.manifest.tenant, snapshot.manifest.snapshot)}
    return entries
