"""The backup of one library: a step that makes the snapshot, with its tables, its report and what is staged of it.

A run plans the asset `snapshot` alone. Dagster shows whatever a failed run had planned as failed, so tables as assets with steps of their
own would all be red after a night in which one list could not be read. The step records the tables with the snapshot. So "Materialize"
on the snapshot, or on any of its tables, is a whole backup, as every night.

What Dagster shows of a backup is made from the snapshot, in one way for these steps and for the command line, which has no run.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any

import dagster as dg

from assets_defs import freshness
from assets_defs.backup import (
    PUBLICATIONS,
    READABLE,
    SNAPSHOT,
    backup_keys,
    table_checks,
    table_results,
    table_specs,
)
from assets_defs.events import Result, events_of
from assets_defs.factories import check_spec, now_utc, tenant_key
from assets_defs.files import FILES, KEPT, file_checks, file_result, file_specs
from assets_defs.follow_ups import REPORT, failure_reason, follow_up_results, followed_up
from assets_defs.metadata import one_line_each, preview
from pipelines.backup.flow import Backup
from pipelines.settings.settings import Settings
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from pipelines.store.snapshots.unfinished import RESUME_HOURS
from pipelines.store.stores import open_data
from resources.run_tags import INSTEAD_OF, TENANT

COMPLETE = "complete"
NEWS = "nothing_new_announced"

_PREVIEW = ("file", "rows", "bytes", "sha256")
"""Columns of a snapshot's preview, which has a row for each table."""


def snapshot_asset(tenant: str, resources: Sequence[str]) -> dg.AssetsDefinition:
    """The backup of one tenant. `resources` are those that Dagster shows."""
    has_files = PUBLICATIONS in resources

    @dg.multi_asset(
        name=f"{tenant}__{SNAPSHOT}",
        group_name=tenant,
        pool=tenant,
        specs=[
            *(spec for resource in resources for spec in table_specs(tenant, resource)),
            *(file_specs(tenant) if has_files else ()),
            _spec(tenant, resources),
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
            yield from events_of([freshness.freshness_result(backup.data, tenant, now_utc())])
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


def _spec(tenant: str, resources: Sequence[str]) -> dg.AssetSpec:
    return dg.AssetSpec(
        tenant_key(tenant, SNAPSHOT),
        deps=[
            key for key in backup_keys(tenant, resources) if key.path[-1] not in {SNAPSHOT, REPORT} and not _is_raw(key)
        ],
        description="A whole backup with its proof. It is published in one step or not at all. To back the library up: Materialize.",
        kinds={"parquet", "duckdb"},
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
    lost = context.run.tags.get(INSTEAD_OF, "")
    try:
        snapshot = backup.make(tenant, context.run.run_id, partial(context.log.info, "Made: %s."), instead_of=lost)
    except Exception as error:
        reason = failure_reason(error)
        planned = {key for asset in context.job_def.asset_layer.data for key in asset.assets_def.check_keys}
        yield from events_of(failure_results(backup.data, tenant, backup.making, reason, now_utc(), planned=planned))
        raise dg.Failure(reason, allow_retries=False) from error
    if lost and snapshot.manifest.run == lost:
        context.log.info("The run %s had published %s before it was lost. It is not made again.", lost, snapshot.name)
    for note in snapshot.manifest.news:
        context.log.warning(note)
    for event in events_of(snapshot_results(backup.data, snapshot, now_utc())):
        is_output = isinstance(event, dg.AssetMaterialization) and event.asset_key in context.selected_asset_keys
        yield dg.MaterializeResult(asset_key=event.asset_key, metadata=event.metadata) if is_output else event


def _followed_up(context: dg.AssetExecutionContext, tenant: str, backup: Backup) -> Iterator[Any]:
    """Make the report, and stage the snapshot, unless that has a step of its own in this run."""
    own_steps = context.job_def.asset_layer.selected_asset_keys
    for name in backup.follow_ups(tenant):
        if tenant_key(tenant, name) not in own_steps:
            yield from events_of(followed_up(backup, tenant, name))


def snapshot_results(data: DataFolder, snapshot: Snapshot, now: datetime) -> Iterator[Result]:
    """A published snapshot, complete or partial, and its tables and files, with their checks."""
    manifest = snapshot.manifest
    yield from table_results(data, snapshot)
    if PUBLICATIONS in manifest.resources or PUBLICATIONS in manifest.unreadable:
        yield file_result(snapshot)
    yield _snapshot_result(snapshot, freshness.freshness_result(data, manifest.tenant, now))


def backup_results(settings: Settings, snapshot: Snapshot, follow_ups: Mapping[str, Any]) -> Iterator[Result]:
    """A backup by the command line: its snapshot, and what was made of that, by the names of `Backup.follow_ups`."""
    yield from snapshot_results(open_data(settings), snapshot, now_utc())
    for name, made in follow_ups.items():
        yield from follow_up_results(snapshot.manifest.tenant, name, made)


def failed_backup_results(settings: Settings, tenant: str, failed: str, error: Exception) -> Iterator[Result]:
    """A backup by the command line that has failed."""
    data = open_data(settings)
    return failure_results(data, tenant, failed, failure_reason(error), now_utc())


def failure_results(
    data: DataFolder,
    tenant: str,
    failed: str,
    reason: str,
    now: datetime,
    *,
    planned: Collection[dg.AssetCheckKey] = (),
) -> Iterator[Result]:
    """The checks that are red where no snapshot was made. `failed`: the table that could not be made, or `files`; may be empty.

    What the snapshot would have said is not known, nor are other checks that are `planned`, which Dagster would show as failed. The age is
    that of the last one.
    """
    key = tenant_key(tenant, SNAPSHOT)
    reasons = {dg.AssetCheckKey(key, COMPLETE): f"No snapshot was made. {reason}"}
    if failed == FILES or failed.startswith("raw_"):
        check = KEPT if failed == FILES else READABLE
        reasons[dg.AssetCheckKey(tenant_key(tenant, failed), check)] = reason
    planned_keys = {check for check in planned if check.asset_key.path[0] == tenant} | {dg.AssetCheckKey(key, NEWS)}
    for check_key in sorted({*reasons, *planned_keys} - {dg.AssetCheckKey(key, freshness.CHECK)}, key=str):
        yield dg.AssetCheckResult(
            asset_key=check_key.asset_key,
            check_name=check_key.name,
            passed=False,
            severity=dg.AssetCheckSeverity.ERROR if check_key in reasons else dg.AssetCheckSeverity.WARN,
            description=reasons.get(check_key, "Not known: no snapshot was made."),
        )
    yield freshness.freshness_result(data, tenant, now)


def _snapshot_result(snapshot: Snapshot, recent: dg.AssetCheckResult) -> dg.MaterializeResult:
    manifest = snapshot.manifest
    return dg.MaterializeResult(
        asset_key=tenant_key(manifest.tenant, SNAPSHOT),
        data_version=dg.DataVersion(manifest.snapshot),
        metadata={
            "snapshot": manifest.snapshot,
            "complete": manifest.complete,
            "problems": one_line_each(manifest.problems),
            "notes": one_line_each(manifest.notes),
            **({} if manifest.days_left is None else {"days_left": manifest.days_left}),
            "dagster/row_count": sum(snapshot.counts.values()),
            "bytes": sum(table.bytes for table in manifest.tables.values()),
            "requests": manifest.requests,
            "dagster/uri": snapshot.uri,
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


@contextmanager
def stop_explained(context: dg.AssetExecutionContext, tenant: str) -> Iterator[None]:
    """Explains a stop of this block (Terminate in the web interface, SIGTERM, Ctrl-C) in the run's log, and raises it again."""
    try:
        yield
    except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
        context.log.warning(
            "Stopped before the end. No snapshot of %s is published in part, and the last good one is untouched. What was read is stored: "
            "the next backup of the same resources resumes there, if it begins within %d hours of the start of this one.",
            tenant,
            RESUME_HOURS,
        )
        raise
