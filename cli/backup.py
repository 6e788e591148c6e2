"""`bookferry backup`: make one snapshot and print the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any
from uuid import uuid4

from rich.console import RenderableType

from cli.boundary import explained_error, message_of, stop_message
from cli.notify import notifying
from cli.options import names_in
from cli.output import Answer, say, verdict, warning
from cli.progress import ProgressDisplay
from cli.snapshots import failed_files
from cli.stage import load_lines, registration_line
from cli.tell_dagster import tell_dagster
from pipelines.backup.flow import Backup
from pipelines.errors import ConfigurationError, ExitStatus
from pipelines.humanize import counted, duration, size
from pipelines.inventory import plural, records_in_words, resource_problem
from pipelines.notify import Ending
from pipelines.service.redaction import redact
from pipelines.settings.settings import Settings
from pipelines.shapes.unread_lists import list_in_words
from pipelines.store.encryption import personal_keys
from pipelines.store.maintenance.reports import report_address
from pipelines.store.snapshots.facts import FileTotals
from pipelines.store.snapshots.snapshots import Snapshot
from pipelines.store.stores import open_data

STOPPED_AFTERWARDS = (
    "Stopped after snapshot {snapshot} was published. `bookferry report {tenant}` and, where tables are staged, `bookferry stage {tenant}` "
    "make what is missing of it."
)

NAMED = 3
"""Lists that the last line names; the notes name all."""


@dataclass(frozen=True)
class MadeBackup:
    """A snapshot that was published now, and what was made of it."""

    snapshot: Snapshot
    follow_ups: dict[str, Any] = field(default_factory=dict)
    """By the names of `Backup.follow_ups`: each result, or the error that there was instead."""


def backup_tenant(settings: Settings, tenant: str, *, resources: str = "", no_files: bool = False) -> Answer:
    """Back up one tenant. What the service announces anew is said on stderr: it must reach a person whose job keeps only the document."""
    asked = names_in(resources)
    if mistake := resource_problem(settings.tenant(tenant).api, asked):
        raise ConfigurationError(f"--resources: {mistake}.")
    with notifying(settings, "backup", tenant) as run:
        with ProgressDisplay() as display:
            made = make_backup(settings, tenant, display, asked=asked, with_files=not no_files)
        snapshot = made.snapshot
        run.ending = Ending.of_backup(snapshot)
    page = report_address(open_data(settings), snapshot)
    if isinstance(failed := made.follow_ups.get("report"), Exception):
        say(f"! The report could not be made: {redact(message_of(failed, explained_error(failed)))}")
    for note in snapshot.manifest.news:
        say(f"! {note}")
    status = ExitStatus.COMPLETE if snapshot.manifest.complete else ExitStatus.PARTIAL
    return Answer(_document(settings, made, page), _lines(made, page), status)


def make_backup(
    settings: Settings,
    tenant: str,
    display: ProgressDisplay,
    *,
    asked: Sequence[str] = (),
    with_files: bool = True,
) -> MadeBackup:
    """Make and publish a snapshot of a tenant, with its report and what is staged of it. `asked`: resources that a person named."""
    if settings.tenant(tenant).api == "v2":
        settings.check_sign_in(tenant)  # a missing variable is reported before anything starts
        personal_keys(settings).to_write()
    if settings.stages:
        settings.postgres()
    if settings.iceberg is not None:
        settings.iceberg.secrets(settings.path)
    with Backup(
        settings, on_progress=display.progress, on_wait=display.waiting, asked=asked, with_files=with_files
    ) as backup:
        try:
            made = MadeBackup(backup.make(tenant, str(uuid4())))
        except Exception as error:
            tell_dagster(settings, "snapshot:failed_backup_results", settings, tenant, backup.making, error)
            raise
        results, name = "snapshot:backup_results", made.snapshot.name
        tell_dagster(settings, results, settings, made.snapshot, made.follow_ups, subject=name)
        with stop_message(STOPPED_AFTERWARDS.format(snapshot=name, tenant=tenant)):
            _follow_up(backup, tenant, made)
    return made


def _follow_up(backup: Backup, tenant: str, made: MadeBackup) -> None:
    """Make what is made of a snapshot. A report that fails does not make the backup fail."""
    for name, make in backup.follow_ups(tenant).items():
        try:
            made.follow_ups[name] = make()
        except Exception as error:
            made.follow_ups[name] = error
            if name != "report":
                raise


def _stored(files: FileTotals) -> str:
    """How many files the snapshot has. Equal ones are stored once, so that the data folder grows by less."""
    text = f"{counted(files.kept, 'file')} stored ({size(files.total_bytes or files.bytes)}), {files.new:,} of them new"
    if 0 < files.contents < files.kept:
        text += f"; equal files share a copy: {counted(files.contents, 'copy', 'copies')}, {size(files.bytes)}"
    return f"{text}."


def _document(settings: Settings, made: MadeBackup, page: str | None) -> dict[str, Any]:
    """The JSON document of a backup. Scripts rely on its keys."""
    document = {name: getattr(made.snapshot.manifest, name) for name in _FACTS}
    document |= {
        "counts": made.snapshot.counts,
        "not_read": made.snapshot.not_read,
        "path": made.snapshot.address,
        "report": page,
    }
    for name, is_set in (("postgres", settings.stages), ("iceberg", settings.iceberg is not None)):
        if is_set:
            document[name] = made.follow_ups.get(name, [])
    return document


_FACTS = (
    *("tenant", "snapshot", "complete", "files", "requests", "seconds", "problems", "notes", "announced", "days_left"),
    "unreadable",
)
"""What the document has of the manifest."""


def _lines(made: MadeBackup, page: str | None) -> Iterator[RenderableType]:
    """What was staged, problems and notes, files, report and counts; the verdict is the last line."""
    snapshot, manifest = made.snapshot, made.snapshot.manifest
    for load in made.follow_ups.get("postgres", []):
        yield from load_lines(load)
    for registration in made.follow_ups.get("iceberg", []):
        yield registration_line(registration)
    said = manifest.news
    yield from (warning(text) for text in (*manifest.problems, *manifest.notes) if text not in said)
    yield from failed_files(manifest.files)
    if manifest.files.kept:
        yield _stored(manifest.files)
    if page:
        yield f"Report for librarians: {page}"
    yield snapshot.address
    summary = ", ".join(starmap(records_in_words, snapshot.counts.items()))
    if manifest.unreadable:
        summary += f"; not readable: {', '.join(map(plural, manifest.unreadable))}"
    if manifest.not_read:
        more = "and more" if len(manifest.not_read) > NAMED else ""
        summary += f"; not read: {', '.join(map(list_in_words, manifest.not_read[:NAMED]))} {more}".rstrip()
    if isinstance(made.follow_ups.get("report"), Exception):
        summary += "; without a report"
    summary += f"; {counted(manifest.requests, 'request')}, {duration(manifest.seconds)}. Snapshot {snapshot.name}"
    if manifest.complete:
        yield verdict("Complete:", f"{summary}.")
    else:
        summary += " is stored, but not proved complete; the newest complete one stays current."
        yield verdict("PARTIAL:", summary, good=False)
