"""`bookferry backup`: make one snapshot and print the result."""

from __future__ import annotations

from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from cli.jobs import BackupResult, run_backup
from cli.notify import notifying
from cli.output import Output, print_warning
from cli.progress import ProgressDisplay
from cli.snapshots import print_failed_files
from cli.stage import load_document, print_load, print_registration
from pipelines.backup.flow import checked_resources
from pipelines.errors import ExitStatus
from pipelines.humanize import counted, duration, size
from pipelines.notify import Ending
from pipelines.settings.settings import Settings
from pipelines.store.maintenance.reports import report_address
from pipelines.store.snapshots.captures import FileTotals
from pipelines.store.snapshots.snapshots import Snapshot
from pipelines.store.stores import open_data

NAMED = 3
"""Lists that the last line names; the notes name all."""


def backup_tenant(
    settings: Settings, tenant: str, wanted: list[str], output: Output, *, with_files: bool = True
) -> ExitStatus:
    """Back up one tenant and print the result."""
    chosen = settings.tenant(tenant)
    resources = checked_resources(chosen, wanted)
    with notifying(settings, "backup", tenant, output) as run:
        with ProgressDisplay() as display:
            done = run_backup(settings, tenant, resources, display, asked=wanted, with_files=with_files)
        snapshot = done.snapshot
        run.ending = Ending.of_backup(snapshot)
    page = report_address(open_data(settings), snapshot)
    document = {**summary(snapshot), "report": page}
    document |= {"postgres": [load_document(load) for load in done.staged]} if settings.stages else {}
    document |= {"iceberg": [load_document(one) for one in done.registered]} if settings.iceberg else {}
    if output.as_json:  # what is new must reach a person whose job keeps only the document
        for note in snapshot.manifest.news:
            output.say(f"! {note}")
    output.result(document, lambda console: _print_all(console, done, page))
    return ExitStatus.COMPLETE if snapshot.manifest.complete else ExitStatus.PARTIAL


def _print_all(console: Console, done: BackupResult, page: str | None) -> None:
    for load in done.staged:
        print_load(console, load)
    for registration in done.registered:
        print_registration(console, registration)
    print_summary(console, done.snapshot, page)


def _stored(files: FileTotals) -> str:
    """How many files the snapshot has. Equal ones are stored once, so that the data folder grows by less."""
    text = f"{counted(files.kept, 'file')} stored ({size(files.total_bytes or files.bytes)}), {files.new:,} of them new"
    if 0 < files.contents < files.kept:
        text += f"; equal files share a copy: {files.contents:,} {'copy' if files.contents == 1 else 'copies'}, {size(files.bytes)}"
    return f"{text}."


def summary(snapshot: Snapshot) -> dict[str, Any]:
    """The JSON document of a backup. Scripts rely on its keys."""
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
        "announced": msgspec.to_builtins(manifest.announced),
        "days_left": manifest.days_left,
        "not_read": manifest.not_read,
        "unreadable": {
            resource: {"status": reason.status, "message": reason.message, "missing_scopes": reason.missing_scopes}
            for resource, reason in manifest.unreadable.items()
        },
    }


def print_summary(console: Console, snapshot: Snapshot, report: str | None = None, *, notes: bool = True) -> None:
    """Print problems and `notes`, files, report and counts; the verdict is the last line."""
    manifest = snapshot.manifest
    for problem in (*manifest.problems, *(manifest.notes if notes else ())):
        print_warning(console, problem)
    print_failed_files(console, manifest.files, most=10)
    if manifest.files.kept:
        console.print(_stored(manifest.files))
    if report:
        console.print(f"Report for librarians: {report}")
    console.print(snapshot.address)
    what = ", ".join(f"{count:,} {resource}" for resource, count in snapshot.counts.items())
    if manifest.unreadable:
        what += f"; not readable: {', '.join(manifest.unreadable)}"
    if manifest.not_read:
        more = "and more" if len(manifest.not_read) > NAMED else ""
        what += f"; not read: {', '.join(manifest.not_read[:NAMED])} {more}".rstrip()
    cost = f"{counted(manifest.requests, 'request')}, {duration(manifest.seconds)}"
    if manifest.complete:
        console.print(Text.assemble(("Complete:", "bold green"), f" {what}; {cost}. Snapshot {snapshot.name}."))
    else:
        verdict = f"Snapshot {snapshot.name} is stored, but not proved complete; the newest complete one stays current."
        console.print(Text.assemble(("PARTIAL:", "bold yellow"), f" {what}; {cost}. {verdict}"))
