"""Proves that a snapshot can be put back: restores it into a sandbox started for that, and reads every record and every byte again."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from pipelines.backup import Progress
from pipelines.errors import StorageError
from pipelines.migrating import Migration
from pipelines.migration.applying import ApplyProgress, Limits
from pipelines.migration.plans import CONFLICT, QUARANTINED
from pipelines.service.stand_in import CLIENT, sign_in, stand_in
from pipelines.settings import Settings, TenantSettings
from pipelines.store.durable import storage_errors
from pipelines.store.snapshots import DataFolder, Snapshot

DRILLS = "drills"
TENANT = "drill"

ALL = Limits(failures=1_000_000_000, failures_percent=100.0, touched_percent=100.0)
"""A drill wants to know of everything that cannot be put back."""


class Drill(msgspec.Struct, kw_only=True):
    """What one drill found."""

    tenant: str
    snapshot: str
    ok: bool
    drilled_at: str
    seconds: float
    records: int
    """Records that were put back and read again."""
    files: int
    bytes: int
    """Of the files, read back and compared byte by byte."""
    problems: list[str]
    problems_count: int

    @property
    def name(self) -> str:
        """`tenant/snapshot`."""
        return f"{self.tenant}/{self.snapshot}"


MOST_PROBLEMS = 1000


def drill(
    settings: Settings,
    data: DataFolder,
    snapshot: Snapshot,
    *,
    now: datetime,
    on_progress: Callable[[Progress | ApplyProgress], None] = lambda _: None,
) -> Drill:
    """Restore a snapshot into an empty library of a sandbox, read it back, compare; keep the result with the snapshot."""
    begun = time.monotonic()
    data.prepare()
    with (
        storage_errors(data.path),
        tempfile.TemporaryDirectory(prefix=".drill-", dir=data.path) as folder,
        stand_in(["--tenant", f"{TENANT}=empty", "--requests-per-minute", "0", "--port", "0"]) as ready,
    ):
        inside = _inside(settings, Path(folder), ready["tenants"][TENANT]["base_url"])
        sign_in(inside, TENANT, ready, TENANT)
        with Migration(inside, on_progress=on_progress, source_data=data) as migration:
            plan = migration.plan(snapshot, TENANT)
            applied = migration.apply(plan, limits=ALL).applied
            proof = migration.verify(plan, contents=True)
    facts = plan.facts
    problems = [f"{one.resource} {one.source_id}: {one.problem}" for one in applied.failures]
    problems += [str(one) for one in proof.findings]
    problems += [
        f"{count:,} {what}"
        for count, what in (
            (facts.count(QUARANTINED) + facts.unfit, "records cannot be put back"),
            (facts.count(CONFLICT), "records are conflicts"),
            (facts.files.missing, "files are missing in the snapshot"),
        )
        if count
    ]
    result = Drill(
        tenant=snapshot.manifest.tenant,
        snapshot=snapshot.manifest.snapshot,
        ok=proof.equal and not problems,
        drilled_at=now.astimezone(UTC).isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - begun, 3),
        records=proof.compared,
        files=proof.files_checked,
        bytes=facts.files.bytes,
        problems=problems[:MOST_PROBLEMS],
        problems_count=len(problems),
    )
    data.objects.replace(_key(result.tenant, result.snapshot), msgspec.json.format(msgspec.json.encode(result)))
    return result


def last_drill(data: DataFolder, tenant: str, snapshot: str) -> Drill | None:
    """The last drill of a snapshot; none where there is none that can be read."""
    with suppress(FileNotFoundError, StorageError, msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode(data.objects.read(_key(tenant, snapshot)), type=Drill)
    return None


def forget_drills(data: DataFolder) -> None:
    """Remove what is kept of snapshots that are gone."""
    there = {key.replace("snapshots/", f"{DRILLS}/", 1) + ".json" for key in data.snapshot_keys()}
    for entry in list(data.objects.below(DRILLS)):
        if entry.key not in there:
            data.objects.delete(entry.key)


def _key(tenant: str, snapshot: str) -> str:
    return f"{DRILLS}/tenant={tenant}/snapshot={snapshot}.json"


def _inside(settings: Settings, folder: Path, base_url: str) -> Settings:
    """Settings of a data folder of its own, so that a drill leaves no trace in the journal, the budget or the sign-ins of a library."""
    chosen = TenantSettings(
        base_url=base_url,
        api="v3",
        client_id=CLIENT,
        client_auth="none",
        requests_per_minute=1_000_000,
        send_invalid_identifiers=True,
    )
    return replace(
        settings, data=folder, bucket=None, postgres_env=None, tokens=folder / "sign-ins", tenants={TENANT: chosen}
    )
