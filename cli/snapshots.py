"""`bookferry snapshots list` and `show`: print snapshots and their manifests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec
from rich.console import RenderableType
from rich.text import Text

from cli.output import MOST_PRINTED, Answer, ReadableTable, first, warning
from pipelines.humanize import duration, last_and_more, size
from pipelines.inventory import RESOURCES, plural
from pipelines.records.files import COVER
from pipelines.settings.settings import Settings
from pipelines.shapes.unread_lists import list_in_words
from pipelines.store.maintenance.results import DRILLS, VERIFICATIONS, DrillResult, SnapshotVerification
from pipelines.store.snapshots.facts import FileTotals
from pipelines.store.snapshots.snapshots import DamagedSnapshot, DataFolder, Snapshot
from pipelines.store.stores import open_data

_Line: TypeAlias = tuple[Snapshot, SnapshotVerification | None, DrillResult | None]
"""A snapshot with its last verification and its last drill."""


def list_snapshots(settings: Settings, *, tenant: str | None) -> Answer:
    """List all snapshots, oldest first. An empty folder is no failure."""
    if tenant is not None:
        settings.tenant(tenant)
    data, now = open_data(settings), datetime.now(UTC)
    snapshots, damaged = data.examine_snapshots(tenant)
    lines: list[_Line] = []
    for snapshot in snapshots:
        name = snapshot.name.split("/")
        lines.append((snapshot, VERIFICATIONS.last(data, *name), DRILLS.last(data, *name)))
    document = {
        "snapshots": [
            {**snapshot_document(snapshot, now), "last_verified": verified, "last_drilled": drilled}
            for snapshot, verified, drilled in lines
        ],
        "damaged": [{"snapshot": snapshot.name, "problem": str(snapshot.problem)} for snapshot in damaged],
    }
    return Answer(document, _list(lines, damaged, now, settings))


def show_snapshot(settings: Settings, *, snapshot: str) -> Answer:
    """Show the manifest of one snapshot."""
    chosen = open_data(settings).find_snapshot(snapshot)
    document = {**msgspec.json.decode(msgspec.json.encode(chosen.manifest)), "path": chosen.address}
    return Answer(document, _manifest(chosen))


def tenant_snapshot(data: DataFolder, tenant: str, name: str | None) -> Snapshot:
    """Returns a snapshot of a tenant by its id, with or without the tenant before it; without a name, the newest complete one."""
    return data.find_snapshot(f"{tenant}/{name.removeprefix(f'{tenant}/')}" if name else tenant)


def snapshot_document(snapshot: Snapshot, now: datetime) -> dict[str, Any]:
    """The JSON document of a snapshot in lists. Scripts rely on its keys."""
    manifest = snapshot.manifest
    return {
        "tenant": manifest.tenant,
        "snapshot": manifest.snapshot,
        "complete": manifest.complete,
        "finished_at": manifest.finished_at,
        "age_seconds": round((now - datetime.fromisoformat(manifest.finished_at)).total_seconds()),
        "records": sum(snapshot.counts.values()),
        "counts": snapshot.counts,
        "not_read": snapshot.not_read,
        "files": manifest.files.kept,
        "bytes": _bytes(snapshot),
        "requests": manifest.requests,
        "path": snapshot.address,
    }


def _bytes(snapshot: Snapshot) -> int:
    return sum(table.bytes for table in snapshot.manifest.tables.values())


def _list(
    lines: list[_Line], damaged: list[DamagedSnapshot], now: datetime, settings: Settings
) -> Iterator[RenderableType]:
    if not lines and not damaged:
        yield f"No snapshots in {settings.bucket or settings.data} yet. `bookferry backup TENANT` makes one."
        return
    rows = [
        (
            snapshot.name,
            ago(snapshot.manifest.finished_at, now),
            "complete" if snapshot.manifest.complete else "PARTIAL",
            f"{sum(snapshot.counts.values()):,}",
            size(_bytes(snapshot)),
            f"{snapshot.manifest.requests:,}",
            checked(verified, now),
            checked(drilled, now),
        )
        for snapshot, verified, drilled in lines
    ]
    columns = ("snapshot", "age", "proof", "records", "size", "requests", "last verified", "last drilled")
    rows += [(snapshot.name, "", "DAMAGED", "", "", "", "", "") for snapshot in damaged]
    yield ReadableTable(columns, rows, right=("records", "size", "requests"))
    yield from not_read_lines([(snapshot.name, snapshot) for snapshot, _, _ in lines])
    for snapshot in damaged:
        remedy = f"`bookferry snapshots verify {snapshot.name}` checks it again."
        yield warning(f"{snapshot.name}: {snapshot.problem} {remedy}")


def not_read_lines(snapshots: Sequence[tuple[str, Snapshot]]) -> Iterator[str]:
    """What snapshots do not have, once for all that lack the same. Each has its name in the table above."""
    names: dict[str, list[str]] = {}
    for name, snapshot in snapshots:
        if snapshot.not_read:
            names.setdefault(_not_read(snapshot), []).append(name)
    for name, lacking in names.items():
        yield f"Not read in {last_and_more(lacking)}: {name}."


def _not_read(snapshot: Snapshot) -> str:
    unread, unreadable = snapshot.not_read, snapshot.manifest.unreadable
    words = [
        (plural(name) if name in RESOURCES else list_in_words(name)) + (" (not readable)" if name in unreadable else "")
        for name in unread[:MOST_PRINTED]
    ]
    more = len(unread) - len(words)
    return ", ".join([*words, f"{more:,} more"] if more else words)


def checked(result: SnapshotVerification | DrillResult | None, now: datetime) -> str:
    """When a snapshot was last verified or drilled, and whether it was bad."""
    if result is None:
        return "never"
    if isinstance(result, DrillResult):
        at, finding = result.drilled_at, ("in part" if result.lost else "") if result.ok else "FAILED"
    else:
        at, finding = result.verified_at, "" if result.ok else "DAMAGED"
    return f"{finding}, {ago(at, now)}" if finding else ago(at, now)


def ago(moment: str, now: datetime) -> str:
    """How long something is past: `3 h 12 min ago`."""
    return f"{duration(max(0.0, (now - datetime.fromisoformat(moment)).total_seconds()))} ago"


def _manifest(snapshot: Snapshot) -> Iterator[RenderableType]:
    manifest = snapshot.manifest
    proof = ("complete", "") if manifest.complete else ("PARTIAL", "yellow")
    yield Text.assemble((snapshot.name, "bold"), "  ", proof)
    yield f"from {manifest.base_url} ({manifest.api}), {manifest.started_at} in {duration(manifest.seconds)}"
    yield f"in {snapshot.address}"
    yield from map(warning, (*manifest.problems, *manifest.notes))
    listings = [
        (name, *map(_number, (facts.records, facts.distinct_ids, facts.x_total, facts.requests)), facts.endpoint)
        for name, facts in manifest.resources.items()
    ]
    listings += [
        (name, "", "", "", _number(attempt.requests), "not readable") for name, attempt in manifest.unreadable.items()
    ]
    listings += [
        (list_in_words(name), "", "", "", "", "not read")
        for name in snapshot.not_read
        if name not in manifest.unreadable
    ]
    yield from map(warning, _failed_files(manifest.files))
    numbers = ("records", "distinct ids", "X-Total", "requests")
    yield ReadableTable(("resource", *numbers, "read from"), listings, title="\nProof", right=numbers)
    files = [
        (facts.path, _number(facts.rows), size(facts.bytes), f"{facts.sha256[:16]}…")
        for facts in manifest.tables.values()
    ]
    yield ReadableTable(("file", "rows", "size", "SHA-256"), files, title="\nTables", right=("rows", "size"))
    for key in {facts.key for facts in manifest.tables.values() if facts.encrypted}:
        paths = ", ".join(facts.path for facts in manifest.tables.values() if facts.key == key)
        yield f"Encrypted with the personal key {key}: {paths}."
    residue = [
        (resource, key, _number(count)) for resource, keys in manifest.residue.items() for key, count in keys.items()
    ]
    if residue:
        title = "\nKept as residue: keys that no column takes"
        yield ReadableTable(("resource", "key", "records"), residue, title=title, right=("records",))


def _number(count: int | None) -> str:
    return "not sent" if count is None else f"{count:,}"


def failed_files(files: FileTotals) -> Iterator[RenderableType]:
    """The first files that could not be fetched, with the reasons."""
    return first(_failed_files(files), files.failed, "`bookferry snapshots show` lists them")


def _failed_files(files: FileTotals) -> list[str]:
    lines = []
    for failure in files.failures:
        name = f"asset {failure.asset_id}"
        if failure.kind == COVER:
            name = f"cover of publication {failure.publication_id}"
        lines.append(f"{name}{f' ({failure.name})' if failure.name else ''}: {failure.problem}")
    return lines
