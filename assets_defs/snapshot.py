"""The backup of one library: a step that makes the snapshot, with its tables, its report and what is staged of it.

A run plans the asset `snapshot` alone. Dagster shows whatever a failed run had planned as failed, so tables as assets with steps of their
own would all be red after a night in which one list could not be read. The step records each table when it has made it. So "Materialize"
on the snapshot, or on any of its tables, is a whole backup, as every night.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import dagster as dg

from assets_defs import freshness
from assets_defs.backup import (
    PUBLICATIONS,
    READABLE,
    REQUIRED,
    SNAPSHOT,
    backup_keys,
    raw_results,
    staged_results,
    table_checks,
    table_specs,
)
from assets_defs.factories import check_spec, now_utc, tenant_key
from assets_defs.files import FILES, KEPT, file_checks, file_results, file_specs
from assets_defs.metadata import columns_of_all, one_line_each, preview
from assets_defs.report import ASSET as REPORT
from assets_defs.report import failure_reason, report_results
from assets_defs.staging import staged_places, staging_results
from pipelines.backup.flow import Backup
from pipelines.records.tables.registry import STAGED
from pipelines.settings.settings import Settings
from pipelines.store.snapshots.manifest import Manifest
from pipelines.store.snapshots.snapshots import Snapshot
from pipelines.store.snapshots.unfinished import RESUME_HOURS
from resources.run_tags import TENANT

COMPLETE = "complete"
NEWS = "nothing_new_announced"

_PREVIEW = ("file", "rows", "bytes", "sha256")
"""Columns of a snapshot's preview, which has a row for each table."""

Result = dg.MaterializeResult | dg.AssetCheckResult
Recorded = dg.AssetMaterialization | dg.AssetCheckEvaluation


class _Step(NamedTuple):
    asset: str
    check: str
    """The check of that asset that is red if the step fails."""
    make: Callable[[], Iterable[Result]]


def snapshot_asset(settings: Settings, tenant: str, resources: Sequence[str]) -> dg.AssetsDefinition:
    """The backup of one tenant. `resources` are those that Dagster shows."""
    has_files = PUBLICATIONS in resources

    @dg.multi_asset(
        name=f"{tenant}__{SNAPSHOT}",
        group_name=tenant,
        pool=tenant,
        specs=[
            *(spec for resource in resources for spec in table_specs(tenant, resource)),
            *(file_specs(tenant) if has_files else ()),
            _spec(settings, tenant, resources),
        ],
        check_specs=[
            *(check for resource in resources for check in table_checks(tenant, resource)),
            *(file_checks(tenant) if has_files else ()),
            *(check_spec(tenant, SNAPSHOT, name, text) for name, text in _CHECKS.items()),
        ],
        can_subset=True,
    )
    def snapshot(context: dg.AssetExecutionContext, backup: dg.ResourceParam[Backup]) -> Iterator[Any]:
        if not context.selected_asset_keys:
            context.log.info(
                "The checks belong to a backup: to make one, materialize snapshot. Only its age can be checked alone."
            )
            yield from _events(tenant, SNAPSHOT, freshness.freshness_result(backup.data, tenant, now_utc()))
            return
        _name_tenant(context, tenant)
        with stop_explained(context, tenant):
            yield from _backed_up(context, tenant, backup)
        yield from _followed_up(context, tenant, backup)

    return snapshot


def _name_tenant(context: dg.AssetExecutionContext, tenant: str) -> None:
    """Tag a run that a person launched, as the schedule tags its own: `status` looks for the library's last run."""
    tenants = {key.path[0] for key in context.job_def.asset_layer.selected_asset_keys}
    if TENANT not in context.run.tags and tenants == {tenant}:
        context.instance.add_run_tags(context.run.run_id, {TENANT: tenant})


def _spec(settings: Settings, tenant: str, resources: Sequence[str]) -> dg.AssetSpec:
    return dg.AssetSpec(
        tenant_key(tenant, SNAPSHOT),
        deps=[
            key for key in backup_keys(tenant, resources) if key.path[-1] not in {SNAPSHOT, REPORT} and not _is_raw(key)
        ],
        description="A whole backup with its proof. It is published in one step or not at all. To back the library up: Materialize.",
        kinds={"parquet", "duckdb"},
        metadata={
            "dagster/column_schema": columns_of_all(table for resource in resources for table in STAGED[resource])
        },
        freshness_policy=freshness.backup_freshness(settings),
        skippable=True,
    )


def _is_raw(key: dg.AssetKey) -> bool:
    return key.path[-1].startswith("raw_")


_CHECKS = {
    COMPLETE: "The snapshot is proved complete.",
    NEWS: "The service announces nothing as deprecated that it did not announce before (X-API-Deprecation), and its records and its "
    "description have the shapes that they had.",
    freshness.CHECK: freshness.TEXT,
}


def _backed_up(context: dg.AssetExecutionContext, tenant: str, backup: Backup) -> Iterator[Any]:
    """Make and publish a snapshot. A failure turns red what failed and the snapshot, with its reason."""
    run = context.run.root_run_id or context.run.run_id  # the name that a run shares with its re-executions
    try:
        for step in _steps(tenant, backup, run):
            yield from _recorded(tenant, step)
        backup.learn(tenant, run)
        published = backup.publish(tenant, run)
    except Exception as error:
        reason = failure_reason(error)
        yield from _not_made(tenant, backup, reason)
        raise dg.Failure(reason, allow_retries=False) from error
    for note in published.manifest.news:
        context.log.warning(note)
    result = _snapshot_result(tenant, published, freshness.freshness_result(backup.data, tenant, now_utc()))
    for event in _events(tenant, SNAPSHOT, result):
        is_output = isinstance(event, dg.AssetMaterialization) and event.asset_key in context.selected_asset_keys
        yield dg.MaterializeResult(asset_key=event.asset_key, metadata=event.metadata) if is_output else event


def _steps(tenant: str, backup: Backup, run: str) -> Iterator[_Step]:
    wanted = backup.resources(tenant)
    for resource in wanted:
        raw, staged = f"raw_{resource}", STAGED[resource][0].name
        yield _Step(raw, READABLE, partial(raw_results, backup, tenant, run, resource, wanted))
        yield _Step(staged, REQUIRED, partial(staged_results, backup, tenant, run, resource))
        if resource == PUBLICATIONS:
            yield _Step(FILES, KEPT, partial(file_results, backup, tenant, run))


def _followed_up(context: dg.AssetExecutionContext, tenant: str, backup: Backup) -> Iterator[Recorded]:
    """Make the report, and stage the snapshot, unless that has a step of its own in this run."""
    own_steps = context.job_def.asset_layer.selected_asset_keys
    following = [REPORT] if PUBLICATIONS in backup.resources(tenant) else []
    for name in [*following, *staged_places(backup.settings)]:
        if tenant_key(tenant, name) not in own_steps:
            make = (
                partial(report_results, backup, tenant)
                if name == REPORT
                else partial(staging_results, name, backup, tenant)
            )
            for result in make():
                yield from _events(tenant, name, result)


def _recorded(tenant: str, step: _Step) -> Iterator[Recorded]:
    try:
        for result in step.make():
            yield from _events(tenant, step.asset, result)
    except Exception as error:
        yield dg.AssetCheckEvaluation(
            asset_key=tenant_key(tenant, step.asset),
            check_name=step.check,
            passed=False,
            description=failure_reason(error),
        )
        raise


def _events(tenant: str, asset: str, result: Result) -> Iterator[Recorded]:
    """A result as what Dagster records of an asset that the run has not planned."""
    key = result.asset_key or tenant_key(tenant, asset)
    if isinstance(result, dg.MaterializeResult):
        yield dg.AssetMaterialization(key, metadata=result.metadata)
    for check in [result] if isinstance(result, dg.AssetCheckResult) else result.check_results or ():
        yield dg.AssetCheckEvaluation(
            asset_key=key,
            check_name=str(check.check_name),
            passed=check.passed,
            severity=check.severity,
            description=check.description,
            metadata=check.metadata,
        )


def _not_made(tenant: str, backup: Backup, reason: str) -> Iterator[Recorded]:
    """The checks of a snapshot that was not made: what it would have said is not known, and the age is that of the last one."""
    unknown = "Not known: no snapshot was made."
    for check in (
        dg.AssetCheckResult(passed=False, check_name=COMPLETE, description=f"No snapshot was made. {reason}"),
        dg.AssetCheckResult(passed=False, check_name=NEWS, severity=dg.AssetCheckSeverity.WARN, description=unknown),
        freshness.freshness_result(backup.data, tenant, now_utc()),
    ):
        yield from _events(tenant, SNAPSHOT, check)


def _snapshot_result(tenant: str, published: Snapshot, recent: dg.AssetCheckResult) -> dg.MaterializeResult:
    manifest = published.manifest
    return dg.MaterializeResult(
        asset_key=tenant_key(tenant, SNAPSHOT),
        metadata={
            "snapshot": manifest.snapshot,
            "complete": manifest.complete,
            "problems": one_line_each(manifest.problems),
            "notes": one_line_each(manifest.notes),
            **_announcement_metadata(manifest),
            "dagster/row_count": sum(published.counts.values()),
            "bytes": sum(table.bytes for table in manifest.tables.values()),
            "requests": manifest.requests,
            "dagster/uri": published.uri,
            "preview": preview(
                _PREVIEW,
                ((table.path, table.rows, table.bytes, table.sha256) for table in manifest.tables.values()),
            ),
        },
        check_results=[
            dg.AssetCheckResult(
                passed=manifest.complete,
                check_name=COMPLETE,
                description=" ".join(manifest.problems) or "Every record that the service announced is there.",
                metadata={"problems": one_line_each(manifest.problems), "notes": one_line_each(manifest.notes)},
            ),
            dg.AssetCheckResult(
                passed=not manifest.news,
                check_name=NEWS,
                severity=dg.AssetCheckSeverity.WARN,
                description=" ".join(manifest.news) or "Nothing new.",
                metadata={"new": one_line_each(manifest.news)},
            ),
            recent,
        ],
    )


def _announcement_metadata(manifest: Manifest) -> dict[str, Any]:
    """What the service announces as deprecated, and the days until the end of the version."""
    found: dict[str, Any] = {"news": " ".join(manifest.news)} if manifest.news else {}
    if manifest.announced:
        rows = ((one.name, one.day, one.since) for one in manifest.announced)
        found["announced"] = preview(("name", "day", "since"), rows)
    return found if manifest.days_left is None else {**found, "days_left": manifest.days_left}


@contextmanager
def stop_explained(context: dg.AssetExecutionContext, tenant: str) -> Iterator[None]:
    """Explains a stop of this block (Terminate in the web interface, SIGTERM, Ctrl-C) in the run's log, and raises it again."""
    try:
        yield
    except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
        context.log.warning(
            "Stopped before the end. Nothing of %s was published and its last good snapshot is untouched. What was read is stored: the "
            "next backup of the same resources resumes there, if it begins within %d hours of the start of this one.",
            tenant,
            RESUME_HOURS,
        )
        raise
