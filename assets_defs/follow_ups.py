"""What is made of a published snapshot: its report, and where it is staged for analysis. Each step can be repeated alone.

An error is a red check. A report that fails does not make the backup fail.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import dagster as dg
import msgspec

from assets_defs.backup import SNAPSHOT
from assets_defs.events import Result
from assets_defs.factories import check_spec, tenant_key
from assets_defs.metadata import preview
from pipelines.backup.flow import Backup
from pipelines.errors import BookferryError
from pipelines.records.advice import label_of
from pipelines.report.pages import Report
from pipelines.service.redaction import outside_text
from pipelines.settings.settings import Settings

if TYPE_CHECKING:
    from pipelines.store.iceberg.tables import Registration
    from pipelines.store.postgres.loading import LoadResult

REPORT = "report"

CHANGES = ("added", "changed", "removed", "new", "solved")
"""Numbers of a report that Dagster plots from night to night: records and issues since the backup before."""


class FollowUp(NamedTuple):
    """An asset that is made of a snapshot, by the step of the same name of `Backup.follow_ups`."""

    description: str
    kinds: set[str]
    check: str
    check_text: str
    metadata: Callable[[Any], dict[str, Any]]
    """What the pages show of the result of the step."""
    fails_backup: bool = True


def follow_up_assets(settings: Settings, tenant: str, *, with_report: bool) -> list[dg.AssetsDefinition]:
    """The assets of one tenant: the report, if there are publications, and where the settings stage its snapshots."""
    names = [
        *([REPORT] if with_report else []),
        *(["postgres"] if settings.stages else []),
        *(["iceberg"] if settings.iceberg is not None else []),
    ]
    return [_asset(tenant, name, FOLLOW_UPS[name]) for name in names]


def _asset(tenant: str, name: str, follow_up: FollowUp) -> dg.AssetsDefinition:
    @dg.asset(
        key=tenant_key(tenant, name),
        group_name=tenant,
        pool=tenant,
        description=follow_up.description,
        kinds=follow_up.kinds,
        deps=[tenant_key(tenant, SNAPSHOT)],
        output_required=False,
        check_specs=[check_spec(tenant, name, follow_up.check, follow_up.check_text)],
    )
    def made(backup: dg.ResourceParam[Backup]) -> Iterator[Result]:
        yield from followed_up(backup, tenant, name)

    return made


def followed_up(backup: Backup, tenant: str, name: str) -> Iterator[Result]:
    """Make one of them of the newest snapshot. Raises `dagster.Failure` where its error fails the backup."""
    made: Any
    try:
        made = backup.follow_ups(tenant)[name]()
    except Exception as error:  # noqa: BLE001  whatever it is, its check says so
        made = error
    yield from follow_up_results(tenant, name, made)
    if isinstance(made, Exception) and FOLLOW_UPS[name].fails_backup:
        raise dg.Failure(failure_reason(made), allow_retries=False) from made


def follow_up_results(tenant: str, name: str, made: Any) -> Iterator[Result]:
    """What was made, or the error that there was instead, with its check."""
    follow_up, key = FOLLOW_UPS[name], tenant_key(tenant, name)
    failed = isinstance(made, Exception)
    yield dg.AssetCheckResult(
        asset_key=key,
        check_name=follow_up.check,
        passed=not failed,
        severity=dg.AssetCheckSeverity.ERROR if follow_up.fails_backup else dg.AssetCheckSeverity.WARN,
        description=failure_reason(made) if failed else None,
    )
    if not failed:
        yield dg.MaterializeResult(asset_key=key, metadata=follow_up.metadata(made))


def failure_reason(error: Exception) -> str:
    """What a red check says of an error: its message, or that it is a mistake of ours."""
    text = outside_text(error, 2000)
    if isinstance(error, BookferryError):
        return text
    return f"{type(error).__name__}: {text}. This is a mistake in Bookferry: please report it with the lines of the run's log."


def _report_metadata(report: Report) -> dict[str, Any]:
    rows = ((label_of(group.rule, group.type), group.issues) for group in report.issue_kinds)
    changes = report.nights[-1].last_night if report.nights else None
    since_last_night = msgspec.to_builtins(changes) if changes else {}
    return {
        **{name: since_last_night[name] for name in CHANGES if name in since_last_night},
        "what_to_look_at": preview(("what to look at", "issues"), rows),
        "to_do": report.to_do,
        "repaired": report.repaired,
        "snapshot": report.snapshot,
        "complete": report.complete,
        "page": dg.MetadataValue.path(report.paths.html),
        "issues": dg.MetadataValue.path(report.paths.issues),
        "workbook": dg.MetadataValue.path(report.paths.workbook),
    }


def _load_metadata(loads: "Sequence[LoadResult]") -> dict[str, Any]:
    places = [f"{load.database}, schema {load.schema}" for load in loads]
    left_out = [sentence for load in loads for sentence in load.left_out]
    notes = [note for load in loads for note in load.notes]
    return {**_staging_metadata(loads), "database": places, "left_out": left_out, "notes": notes}


def _registration_metadata(registrations: "Sequence[Registration]") -> dict[str, Any]:
    places = [f"{registration.catalogue}, namespace {registration.namespace}" for registration in registrations]
    return {**_staging_metadata(registrations), "catalogue": places}


def _staging_metadata(staged: "Sequence[LoadResult | Registration]") -> dict[str, Any]:
    tables = [(step.snapshot, name, rows) for step in staged for name, rows in step.tables.items()]
    return {
        "dagster/row_count": sum(step.rows for step in staged),
        "seconds": sum(step.seconds for step in staged),
        "snapshots": [step.snapshot for step in staged],
        "preview": preview(("snapshot", "table", "rows"), tables),
    }


FOLLOW_UPS = {
    REPORT: FollowUp(
        "The findings of the newest snapshot that concern librarians: invalid identifiers, duplicates, missing files.",
        {"html", "excel"},
        "made",
        "The report of the newest snapshot could be made.",
        _report_metadata,
        fails_backup=False,
    ),
    "postgres": FollowUp(
        "The staged tables in the database that postgres_env names. A partial snapshot is not loaded; the last complete one stays.",
        {"postgres"},
        "newest_is_there",
        "The newest complete snapshot is there.",
        _load_metadata,
    ),
    "iceberg": FollowUp(
        "The staged tables in the catalogue that [iceberg] names. A partial snapshot and tables about people stay out.",
        {"iceberg"},
        "newest_is_there",
        "The newest complete snapshot is there.",
        _registration_metadata,
    ),
}
