"""A library of version 2, an empty one of version 3, and the configuration that moves one into the other."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from pipelines.backup.flow import Backup
from pipelines.migration.apply.run import ApplyResult, Selection
from pipelines.migration.flow import Migration
from pipelines.migration.mapping.mapping_file import MappingFile
from pipelines.migration.model.plan import Plan, PlanRow
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.report.status import PlanStatus
from pipelines.migration.undo.result import UndoResult
from pipelines.migration.verify.verdict import MigrationVerification
from pipelines.scopes import SCOPES
from pipelines.service.clock import SystemClock
from pipelines.service.sign_in.login import signing_in
from pipelines.settings.config_file import load_settings
from pipelines.state.local import LocalState
from pipelines.store.snapshots.snapshots import Snapshot
from tests.backup.other_resources.signing import sign_in
from tests.backup.runner import take_steps
from tests.sandbox.process import SandboxProcess
from tests.service.sign_in.home import answer_in, consent

CONFIG = """
data = "library-data"
tokens = "sign-ins"

[tenants.old]
base_url = "{source}"
api = "{api}"
requests_per_minute = 100000
{signed}

[tenants.new]
base_url = "{target}"
api = "v3"
client_id = "test"
client_auth = "none"
requests_per_minute = 100000
"""

BASIC = 'username_env = "TEST_USER"\npassword_env = "TEST_PASSWORD"'


Records = dict[int, dict[str, Any]]


class FastClock(SystemClock):
    """A clock on which a minute of waiting takes a second."""

    def sleep(self, seconds: float) -> None:
        """Wait a sixtieth of it, but no shorter than a wait for a certain time of the clock needs."""
        super().sleep(max(seconds / 60, min(seconds, 0.02)))


READ_SECONDS = 2.0
"""The read timeout of tests: a thirtieth of the real one. On a busy machine an effect may come later than it allows for: a twin, which is
named."""


@dataclass(frozen=True)
class SomePublications(Selection):
    """Publications with these ids."""

    ids: Collection[int] = ()

    def wants(self, row: PlanRow) -> bool:
        """Whether it is one of them."""
        return row.resource == PUBLICATIONS and row.source_id in self.ids


@dataclass(frozen=True)
class LibraryPair:
    """A folder with a configuration, and the sandbox behind it."""

    config: Path
    sandbox: SandboxProcess
    target: str
    """Name of the target in the sandbox."""
    token: str
    read_seconds: float = READ_SECONDS
    source: str = "library"

    @classmethod
    def at(
        cls, folder: Path, sandbox: SandboxProcess, source: str, target: str, *, read_seconds: float = READ_SECONDS
    ) -> LibraryPair:
        """Write the configuration, and sign in to the target."""
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "bookferry.toml"
        addresses = {"source": sandbox.base_url(source), "target": sandbox.base_url(target)}
        config.write_text(CONFIG.format(**addresses, api="v2", signed=BASIC))
        return cls(config, sandbox, target, sign_in(config, "new", sandbox, target, SCOPES), read_seconds, source)

    def through_proxy(self, url: str, *, token_seconds: int = 3600) -> LibraryPair:
        """The same libraries through a proxy, with a real sign-in and a journal of their own."""
        folder = self.config.parent / "through"
        folder.mkdir()
        shutil.copytree(self.config.parent / "library-data", folder / "library-data")
        source, target = (url + urlsplit(self.sandbox.base_url(tenant)).path for tenant in (self.source, self.target))
        text = CONFIG.format(source=source, target=target, api="v2", signed=BASIC)
        (folder / "bookferry.toml").write_text(text.replace('client_id = "test"\nclient_auth = "none"\n', ""))
        pair = replace(self, config=folder / "bookferry.toml")
        settings = load_settings(pair.config)
        self.sandbox.change(self.target, oauth={"access_token_seconds": token_seconds, "refresh_policy": "until_used"})
        with signing_in(settings, "new", state=LocalState(folder / "library-data" / "state.db")) as login:
            question = login.ask(SCOPES)
            login.finish(question, answer_in(consent(question.url, self.sandbox, SCOPES)))
        return pair

    def configure(self, line: str) -> None:
        """Add lines at the end of the configuration, which ends with the target's table."""
        with self.config.open("a") as file:
            file.write(f"{line}\n")

    def back_up(
        self,
        run: str = "run",
        *,
        tenant: str = "old",
        files: bool = True,
        resources: Iterable[str] = ("publications",),
    ) -> Snapshot:
        """Back up a library, with its files by default."""
        with Backup(load_settings(self.config), with_files=files) as library:
            return take_steps(library, tenant, run, resources)

    @contextmanager
    def migration(self) -> Iterator[Migration]:
        """The steps of a migration, with a fast clock."""
        with Migration(load_settings(self.config), clock=FastClock(), read_seconds=self.read_seconds) as migration:
            yield migration

    def newest(self) -> Snapshot:
        """The newest snapshot of the source."""
        with self.migration() as migration:
            return migration.find_source("old")

    def plan(self, snapshot: Snapshot, **options: Any) -> Plan:
        """Plan a move into the target."""
        with self.migration() as migration:
            return migration.plan(snapshot, "new", **options)

    def apply(self, plan: Plan, **options: Any) -> ApplyResult:
        """Apply a plan."""
        with self.migration() as migration:
            return migration.apply(plan, **options)

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Send a request of another client to version 3 of the target."""
        answer = httpx.request(
            method,
            f"{self.sandbox.base_url(self.target)}/api/v3/{path}",
            json=body,
            headers={"authorization": f"Bearer {self.token}"},
            timeout=60,
            verify=False,  # plain http: reading the certificates would take longer than the request
        )
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def library(self, tenant: str = "library") -> LibraryPair:
        """The same configuration, to call another library of the sandbox."""
        token = self.sandbox.control("POST", "tokens", {"tenant": tenant})["access_token"]
        return replace(self, target=tenant, token=str(token))

    def records(self, resource: str) -> Records:
        """Every record of a resource of the target, by id."""
        path = {"locations": "hard_copies/locations"}.get(resource, resource)
        records: Records = {}
        page = 1
        while page_records := self.call("GET", f"{path}?per_page=50&page={page}")["records"]:
            records |= {record["id"]: record for record in page_records}
            page += 1
        return dict(sorted(records.items()))

    def publications(self) -> list[dict[str, Any]]:
        """Every publication of the target, in the order of their ids."""
        return [*self.records("publications").values()]

    def verify(self, plan: Plan, **options: Any) -> MigrationVerification:
        """Compare the target with a plan."""
        with self.migration() as migration:
            return migration.verify(plan, **options)

    def status(self, plan: Plan) -> PlanStatus:
        """What of a plan is done."""
        with self.migration() as migration:
            return migration.status(plan)

    def undo(self, plan: Plan, **options: Any) -> UndoResult:
        """Take a plan back."""
        with self.migration() as migration:
            return migration.undo(plan, **options)

    def map(self, snapshot: Snapshot, resources: Iterable[str] = ()) -> MappingFile:
        """Write the mapping file."""
        with self.migration() as migration:
            return migration.map(snapshot, "new", resources)

    def requests(self) -> int:
        """Requests to the target so far."""
        return self.sandbox.counts(self.target)["requests"]

    def writes(self) -> list[tuple[str, str]]:
        """Method and path of the last writing requests to the target."""
        received = self.sandbox.requests(self.target)
        return [(request["method"], request["path"]) for request in received if request["method"] != "GET"]
