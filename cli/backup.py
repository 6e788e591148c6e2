"""`bookferry backup`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.text import Text

from cli.jobs import run_backup
from cli.notify import notifying
from cli.output import Output
from cli.progress import ProgressDisplay
from cli.stage import print_load, shown
from pipelines.backup.flow import REPORT_LIMIT, checked_resources
from pipelines.errors import ExitStatus
from pipelines.humanize import counted, duration, size
from pipelines.notify import Ending
from pipelines.records.files import COVER
from pipelines.settings.settings import Settings
from pipelines.store.maintenance.reports import report_address
from pipelines.store.snapshots.captures import FileTotals
from pipelines.store.snapshots.snapshots import Snapshot
from pipelines.store.stores import open_data

if TYPE_CHECKING:
    from pipelines.store.postgres.loading import LoadResult


def backup_tenant(
    settings: Settings, tenant: str, wanted: list[str], output: Output, *, with_files: bool = True
) -> ExitStatus:
    """Back one tenant up and print the contract's document, or the same in words."""
    resources = checked_resources(settings.tenant(tenant), wanted)
    with notifying(settings, "backup", tenant, output) as this:
        with ProgressDisplay() as display:
            snapshot, staged = run_backup(settings, tenant, resources, display, asked=wanted, with_files=with_files)
        this.ending = Ending.of_backup(snapshot)
    page = report_address(open_data(settings), snapshot)
    document = {**summary(snapshot), "report": page}
    document |= {"postgres": [shown(one) for one in staged]} if settings.stages else {}
    output.result(document, lambda console: _print_all(console, snapshot, staged, page))
    return ExitStatus.COMPLETE if snapshot.manifest.complete else ExitStatus.PARTIAL


def _print_all(console: Console, snapshot: Snapshot, staged: Sequence[LoadResult], page: str | None) -> None:
    for one in staged:
        print_load(console, one)
    print_summary(console, snapshot, page)


def summary(snapshot: Snapshot) -> dict[str, Any]:
    """The keys that others rely on, and the problems where there are any."""
    manifest = snapshot.manifest
    return {
        "tenant": manifest.tenant,
        "snapshot": manifest.snapshot,
        "complete": manifest.complete,
        "counts": snapshot.counts,
        "files": msgspec.to_builtins(manifest.files),
        "requests": manifest.requests,
        "seconds": manifest.seconds,
        "path": snapshot.address,
        "problems": manifest.problems,
        "notes": manifest.notes,
        "unreadable": {
            resource: {"status": found.status, "message": found.message, "missing_scopes": found.missing_scopes}
            for resource, found in manifest.unreadable.items()
        },
    }


def print_summary(console: Console, snapshot: Snapshot, report: str | None = None) -> None:
    """What was done, where its report is, and the truth in the last line."""
    manifest = snapshot.manifest
    for problem in (*manifest.problems, *manifest.notes):
        console.print(Text.assemble(("!", "yellow"), f" {problem}"))
    print_failed_files(console, manifest.files, most=10)
    if manifest.files.kept:
        kept = counted(manifest.files.kept, "file")
        console.print(f"{kept} kept ({size(manifest.files.bytes)}), {manifest.files.new:,} of them fetched now")
    if report:
        console.print(f"Report for librarians: {report}")
    elif snapshot.counts.get("publications", 0) > REPORT_LIMIT:
        console.print(f"A report of so many publications is made by: bookferry report {manifest.tenant}")
    console.print(snapshot.address)
    what = ", ".join(f"{count:,} {resource}" for resource, count in snapshot.counts.items())
    if manifest.unreadable:
        what += f"; not readable: {', '.join(manifest.unreadable)}"
    cost = f"{counted(manifest.requests, 'request')}, {duration(manifest.seconds)}"
    if manifest.complete:
        console.print(Text.assemble(("Complete:", "bold green"), f" {what}; {cost}. Snapshot {snapshot.name}."))
    else:
        kept = f"Snapshot {snapshot.name} is kept, but not proved complete; the newest complete one stays current."
        console.print(Text.assemble(("PARTIAL:", "bold yellow"), f" {what}; {cost}. {kept}"))


def print_failed_files(console: Console, files: FileTotals, *, most: int) -> None:
    """Each file that could not be had, and why; of many the first."""
    for one in files.failures[:most]:
        what = f"cover of publication {one.publication_id}" if one.kind == COVER else f"asset {one.asset_id}"
        named = f" ({one.name})" if one.name else ""
        console.print(Text.assemble(("!", "yellow"), f" {what}{named}: {one.problem}"))
    if files.failed > most:
        console.print(Text.assemble(("!", "yellow"), f" and {files.failed - most:,} more files"))
