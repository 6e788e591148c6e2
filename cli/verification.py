"""`bookferry snapshots verify`: reads snapshots again and compares them with their manifests."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.console import RenderableType
from rich.text import Text

from cli.notify import notifying, report_ending
from cli.output import Answer, say, verdict, warning
from cli.tell_dagster import tell_dagster
from pipelines.errors import ExitStatus, StorageError
from pipelines.humanize import counted, size
from pipelines.notify import Ending
from pipelines.settings.settings import Settings
from pipelines.store.maintenance.results import VERIFICATIONS, SnapshotVerification
from pipelines.store.maintenance.verification import (
    Part,
    keys_to_verify,
    tenant_of,
    tenants_without_complete,
    verify,
)
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.store.stores import open_data


def verify_snapshots(settings: Settings, *, snapshot: str | None, read_data: str) -> Answer:
    """Verify one snapshot, or the newest complete one of every tenant. The status is 6 if anything is not as it was published."""
    data, part = open_data(settings), Part.parse(read_data)
    results = []
    for key in keys_to_verify(data, snapshot):
        say(f"Reading {data.objects.address_of(key)} ...")
        with notifying(settings, "verification", tenant_of(key)) as run:
            results.append(verify(data, key, part, now=datetime.now(UTC)))
            run.ending = None if results[-1].ok else Ending.of_verification(results[-1])
        _save(data, results[-1])
    if snapshot is None or snapshot in settings.tenants:  # of the newest snapshots, whose age Dagster shows
        tell_dagster(settings, "verification:verification_results", settings, results, subject="these verifications")
    missing = {
        tenant: f"{tenant} has snapshots, but no complete one. Run `bookferry backup {tenant}`."
        for tenant in ([] if snapshot else tenants_without_complete(data))
    }
    for tenant, text in missing.items():
        report_ending(settings, Ending(job="verification", result="failed", tenant=tenant, message=text))
    problems = [*(text for result in results for text in result.problems), *missing.values()]
    document = {"ok": not problems, "problems": problems, "snapshots": results}
    status = ExitStatus.DIFFERENCES if problems else ExitStatus.COMPLETE
    return Answer(document, _lines(results, list(missing.values())), status)


def _save(data: DataFolder, result: SnapshotVerification) -> None:
    """Save the result. The verification counts even if that is impossible, such as on a read-only disk."""
    try:
        VERIFICATIONS.save(data, result)
    except StorageError as error:
        say(f"The date of this verification could not be saved: {error}")


def _lines(results: list[SnapshotVerification], missing: list[str]) -> Iterator[RenderableType]:
    for result in results:
        state = ("intact", "") if result.ok else ("DAMAGED", "bold red")
        yield Text.assemble((result.name, "bold"), "  ", state)
        yield from (f"- {note}" for note in result.notes)
        yield from map(warning, result.problems)
        if more := result.problems_count - len(result.problems):
            yield f"and {more:,} more"
    yield from map(warning, missing)
    read = (
        f"{counted(sum(result.files for result in results), 'file')}, {size(sum(result.bytes for result in results))}"
    )
    if blobs := sum(result.blobs for result in results):
        read += f", {sum(result.blobs_read for result in results):,} of {blobs:,} blobs read"
    if problems := sum(result.problems_count for result in results) + len(missing):
        yield verdict("Not good:", f"{counted(problems, 'problem')}; {read}.", good=False)
    else:
        yield verdict("Good:", f"{counted(len(results), 'snapshot')} as published; {read}.")
