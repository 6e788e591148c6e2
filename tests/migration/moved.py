"""A library of real records with files, and empty ones into which it is moved, each on one sandbox, for tests of what comes after."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipelines.library import Library
from pipelines.migrating import Migration
from pipelines.migration.plans import Plan
from pipelines.records.values import decode_record
from pipelines.service.client import LibraryClient, open_client
from pipelines.service.uploads import Presign, Uploads
from pipelines.settings import load_settings
from pipelines.store.snapshots import Snapshot
from tests.inventory.signing import sign_in
from tests.sandbox.process import SandboxProcess

RECORDS = 100
"""Of which three have files, five in all: the first of the real records that have some."""

SCOPES = ("library:read", "library:write", "assets:read", "assets:write")

_OLD = """
data = "library-data"
tokens = "sign-ins"
[tenants.old]
base_url = "{base_url}"
api = "v2"
username_env = "TEST_USER"
password_env = "TEST_PASSWORD"
requests_per_minute = 100000
"""
_NEW = """
[tenants.{name}]
base_url = "{base_url}"
api = "v3"
client_id = "test"
client_auth = "none"
requests_per_minute = 100000
"""


def tenants(*targets: str, records: int = RECORDS) -> list[str]:
    """Arguments of a sandbox with the library and its targets."""
    return [
        f"--tenant=library=real:{records}",
        *(f"--tenant={name}=empty" for name in targets),
        "--requests-per-minute=0",
    ]


class Moved:
    """One data folder: the library's snapshot, and what is moved from it."""

    def __init__(self, folder: Path, sandbox: SandboxProcess, *targets: str) -> None:
        self.sandbox = sandbox
        self.config = folder / "bookferry.toml"
        settings = [_NEW.format(name=name, base_url=sandbox.base_url(name)) for name in targets]
        self.config.write_text("".join([_OLD.format(base_url=sandbox.base_url()), *settings]))
        for name in targets:
            sign_in(self.config, name, sandbox, name, SCOPES)
        self.settings = load_settings(self.config)
        self.snapshot = self._back_up()

    def _back_up(self) -> Snapshot:
        with Library(self.settings) as library:
            library.read_raw("old", "run", "publications")
            library.stage("old", "run", "publications")
            library.fetch_files("old", "run")
            return library.publish("old", "run")

    def plan(self, target: str) -> Plan:
        """A plan to move the library."""
        with Migration(self.settings) as migration:
            return migration.plan(self.snapshot, target)

    def applied(self, target: str) -> Plan:
        """A plan that was applied, all of it."""
        with Migration(self.settings) as migration:
            plan = migration.plan(self.snapshot, target)
            assert migration.apply(plan).applied.complete
            return plan

    @contextmanager
    def people(self, target: str) -> Iterator[LibraryClient]:
        """Somebody at work in a target."""
        with Migration(self.settings) as migration:
            state = migration.data.state_path
        with open_client(self.settings, target, state=state) as client:
            yield client

    def became(self, plan: Plan) -> dict[int, int]:
        """Record of the source → record of the target that was made of it."""
        with Migration(self.settings) as migration, _journal(migration, plan) as journal:
            return {
                one.source_id: one.target_id
                for one in journal.of_plan(plan.name)
                if one.kind == "create" and one.target_id is not None
            }

    def content(self, source_id: int, kind: str) -> bytes:
        """The bytes of the first file of a record."""
        rows = pq.read_table(self.snapshot.path / "publication_files.parquet").to_pylist()
        [sha256, *_] = [one["sha256"] for one in rows if (one["publication_id"], one["kind"]) == (source_id, kind)]
        return (self.config.parent / "library-data" / "files" / "sha256" / sha256[:2] / sha256).read_bytes()

    def source(self) -> dict[int, dict[str, Any]]:
        """Id → record of the source, as version 2 shows it."""
        payloads = pq.read_table(self.snapshot.path / "raw" / "publications.parquet").column("payload").to_pylist()
        return {int(one["id"]): one for one in map(decode_record, payloads)}

    def held(self, target: str) -> list[dict[str, Any]]:
        """What a target holds of publications, without ids and addresses of files and with nothing of signatures."""
        with self.people(target) as client:
            records: list[dict[str, Any]] = []
            page = 1
            while found := client.get(f"{client.api_url}/publications", {"page": page, "per_page": 50}).json()[
                "records"
            ]:
                records += found
                page += 1
        return records


def _journal(migration: Migration, plan: Plan) -> Any:
    return migration.journal(plan.facts.source.base_url, plan.facts.target.base_url)


def upload(client: LibraryClient, content: bytes, filename: str, content_type: str, presign: Presign) -> dict[str, Any]:
    """What somebody sends to the storage."""
    uploads = Uploads(client)
    try:
        return dict(
            uploads.upload(
                lambda: BytesIO(content),
                presign=presign,
                filename=filename,
                content_type=content_type,
                size=len(content),
            )
        )
    finally:
        uploads.close()
