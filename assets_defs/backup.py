"""The assets of one tenant's backup: raw tables, the tables staged from them, and the snapshot that publishes both.

Write, audit, publish: a check turns red for whatever makes a snapshot partial. A partial snapshot is published all the same, so that
nothing that was read is lost; it never becomes the newest complete one (I4, I5).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dagster as dg

from assets_defs.factories import FIRST, check_spec, tenant_asset, tenant_key, tenant_keys, tenant_step
from assets_defs.metadata import column_lineage, column_schema, columns_of_all, one_line_each, preview, table_metadata
from pipelines.backup.flow import Backup
from pipelines.records.tables.description import Table
from pipelines.records.tables.publications import PUBLICATION_FILES
from pipelines.records.tables.registry import STAGED, raw_table
from pipelines.store.snapshots.captures import Capture, ResourceFacts, Unreadable, count_nulls
from pipelines.store.snapshots.manifest import Manifest

PUBLICATIONS = "publications"
"""The resource whose records name files."""

SNAPSHOT = "snapshot"
"""The asset that publishes a backup."""

_PREVIEW = ("file", "rows", "bytes", "sha256")
"""Columns of a snapshot's preview, which has a row for each table."""


def tenant_assets(
    tenant: str, resources: Sequence[str], fresh: dg.FreshnessPolicy | None = None
) -> list[dg.AssetsDefinition]:
    """Raw tables, staged tables and snapshot of one tenant."""
    tables = [
        asset for resource in resources for asset in (_raw_asset(tenant, resource), _staged_assets(tenant, resource))
    ]
    return [*tables, _snapshot_asset(tenant, resources, fresh)]


def backup_keys(tenant: str, resources: Iterable[str]) -> list[dg.AssetKey]:
    """The keys of all assets that a backup of these resources makes, with the snapshot and its report."""
    names = [
        name for resource in resources for name in (f"raw_{resource}", *(table.name for table in STAGED[resource]))
    ]
    names += ["files", "report"] if PUBLICATIONS in resources else []
    return tenant_keys(tenant, [*names, SNAPSHOT])


def run_name(context: dg.AssetExecutionContext) -> str:
    """The name that all steps of a run share, also with its re-executions."""
    return context.run.root_run_id or context.run.run_id


@contextmanager
def stop_explained(context: dg.AssetExecutionContext, tenant: str, resume_hours: float) -> Iterator[None]:
    """Explains a stop of this block (Terminate in the web interface, SIGTERM, Ctrl-C) in the run's log, and raises it again."""
    try:
        yield
    except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
        context.log.warning(
            "Stopped before the end. Nothing of %s was published and its last good snapshot is untouched. What was read is stored: the "
            "next backup of the same resources resumes there, if it begins within %d hours of the start of this one (resume_hours).",
            tenant,
            resume_hours,
        )
        raise


def _resources_of_run(context: dg.AssetExecutionContext, tenant: str) -> list[str]:
    """The resources of a tenant that this run reads."""
    selected = (key.path for key in context.job_def.asset_layer.selected_asset_keys)
    return [path[-1].removeprefix("raw_") for path in selected if path[0] == tenant and path[-1].startswith("raw_")]


def _raw_asset(tenant: str, resource: str) -> dg.AssetsDefinition:
    table = raw_table(resource)

    @tenant_asset(
        tenant,
        table.name,
        kinds={"parquet"},
        description=table.comment,
        metadata={"dagster/column_schema": column_schema(table)},
        op_tags=_priority(resource),
        checks={
            "count_equals_x_total": "The number of different ids equals X-Total, which did not change during the listing.",
            "ids_unique": "Every record has an id, and no id occurs twice.",
            "readable": "The service lets the account read the resource, and its answers have the expected form.",
        },
    )
    def raw(context: dg.AssetExecutionContext, backup: dg.ResourceParam[Backup]) -> dg.MaterializeResult:
        with stop_explained(context, tenant, backup.settings.tenant(tenant).resume_hours):
            capture, facts = backup.read_raw(tenant, run_name(context), resource, _resources_of_run(context, tenant))
        if isinstance(facts, Unreadable):
            return _unreadable_result(facts)
        return dg.MaterializeResult(
            metadata={
                **table_metadata(capture, table, facts.requests),
                "pages": facts.pages,
                "endpoint": facts.endpoint,
            },
            check_results=[
                _count_check(facts),
                _ids_check(facts),
                dg.AssetCheckResult(passed=True, check_name="readable"),
            ],
        )

    return raw


def _priority(resource: str) -> dict[str, str] | None:
    return FIRST if resource == PUBLICATIONS else None


def _unreadable_result(unreadable: Unreadable) -> dg.MaterializeResult:
    """The result for a raw table that could not be read: its checks warn, or fail where the snapshot is partial without it."""
    severity = dg.AssetCheckSeverity.ERROR if unreadable.partial else dg.AssetCheckSeverity.WARN
    reason: dict[str, Any] = {"not_read": unreadable.message, "missing_scopes": unreadable.missing_scopes}
    return dg.MaterializeResult(
        metadata={"dagster/row_count": 0, "requests": unreadable.requests, "not_read": unreadable.message},
        check_results=[
            dg.AssetCheckResult(passed=False, check_name=name, severity=severity, metadata=reason)
            for name in ("readable", "count_equals_x_total", "ids_unique")
        ],
    )


def _staged_assets(tenant: str, resource: str) -> dg.AssetsDefinition:
    tables = [table for table in STAGED[resource] if table != PUBLICATION_FILES]  # the files step makes that one

    @tenant_step(
        tenant,
        f"stage_{resource}",
        specs=[table_spec(tenant, table, [f"raw_{resource}"]) for table in tables],
        check_specs=[required_spec(tenant, table) for table in tables],
        op_tags=_priority(resource),
    )
    def staged(context: dg.AssetExecutionContext, backup: dg.ResourceParam[Backup]) -> Iterator[dg.MaterializeResult]:
        capture = backup.stage(tenant, run_name(context), resource)
        for table in tables:
            yield staged_result(capture, resource, table)

    return staged


def table_spec(tenant: str, table: Table, made_from: Sequence[str]) -> dg.AssetSpec:
    """The asset of a staged table."""
    return dg.AssetSpec(
        tenant_key(tenant, table.name),
        deps=tenant_keys(tenant, made_from),
        description=table.comment,
        kinds={"parquet"},
        metadata={"dagster/column_schema": column_schema(table)},
    )


def required_spec(tenant: str, table: Table) -> dg.AssetCheckSpec:
    """The check of a staged table."""
    text = f"These columns are filled in every row: {', '.join(_audited(table))}."
    return check_spec(tenant, table.name, "required_columns", text)


def staged_result(capture: Capture, resource: str, table: Table) -> dg.MaterializeResult:
    """The result for a staged table, with its check. The check of the raw table reports a resource that could not be read."""
    key = tenant_key(capture.facts.tenant, table.name)
    if unreadable := capture.facts.unreadable.get(resource):
        reason = {"not_read": unreadable.message}
        check = dg.AssetCheckResult(asset_key=key, check_name="required_columns", passed=True, metadata=reason)
        return dg.MaterializeResult(
            asset_key=key, metadata={"dagster/row_count": 0, "requests": 0, **reason}, check_results=[check]
        )
    return dg.MaterializeResult(
        asset_key=key,
        metadata={
            **table_metadata(capture, table, requests=0),
            "dagster/column_lineage": column_lineage(capture.facts.tenant, table),
        },
        check_results=[_required_check(capture, table, key)],
    )


def _snapshot_asset(tenant: str, resources: Sequence[str], fresh: dg.FreshnessPolicy | None) -> dg.AssetsDefinition:
    tables = [table for resource in resources for table in STAGED[resource]]

    @tenant_asset(
        tenant,
        SNAPSHOT,
        kinds={"parquet", "duckdb"},
        made_from=[*(table.name for table in tables), *(["files"] if PUBLICATIONS in resources else [])],
        metadata={"dagster/column_schema": columns_of_all(tables)},
        freshness_policy=fresh,
        checks={
            "complete": "The snapshot is proved complete.",
            "nothing_new_announced": "The service announces nothing as deprecated that it did not announce before (X-API-Deprecation), and "
            "its records and its description have the shapes that they had.",
        },
    )
    def snapshot(context: dg.AssetExecutionContext, backup: dg.ResourceParam[Backup]) -> dg.MaterializeResult:
        """A whole backup with its proof. It is published in one step or not at all."""
        backup.learn(tenant, run_name(context))
        published = backup.publish(tenant, run_name(context))
        manifest = published.manifest
        for note in manifest.news:
            context.log.warning(note)
        return dg.MaterializeResult(
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
                    check_name="complete",
                    description=" ".join(manifest.problems) or "Every record that the service announced is there.",
                    metadata={"problems": one_line_each(manifest.problems), "notes": one_line_each(manifest.notes)},
                ),
                dg.AssetCheckResult(
                    passed=not manifest.news,
                    check_name="nothing_new_announced",
                    severity=dg.AssetCheckSeverity.WARN,
                    description=" ".join(manifest.news) or "Nothing new.",
                    metadata={"new": one_line_each(manifest.news)},
                ),
            ],
        )

    return snapshot


def _announcement_metadata(manifest: Manifest) -> dict[str, Any]:
    """What the service announces as deprecated, and the days until the end of the version."""
    found: dict[str, Any] = {"news": " ".join(manifest.news)} if manifest.news else {}
    if manifest.announced:
        rows = ((one.name, one.day, one.since) for one in manifest.announced)
        found["announced"] = preview(("name", "day", "since"), rows)
    return found if manifest.days_left is None else {**found, "days_left": manifest.days_left}


def _count_check(facts: ResourceFacts) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name="count_equals_x_total",
        passed=facts.complete,
        metadata={
            "x_total": facts.x_total if facts.x_total is not None else "not sent by the service",
            "distinct_ids": facts.distinct_ids,
            "problems": one_line_each(facts.problems),
            "notes": one_line_each(facts.notes),
        },
    )


def _ids_check(facts: ResourceFacts) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name="ids_unique",
        passed=facts.records == facts.distinct_ids,
        metadata={"records": facts.records, "distinct_ids": facts.distinct_ids, "without_id": facts.without_id},
    )


def _audited(table: Table) -> tuple[str, ...]:
    """The columns that must be filled: the required ones and the key."""
    return tuple(column.name for column in table.columns if column.required or column.name in table.key)


def _required_check(capture: Capture, table: Table, key: dg.AssetKey) -> dg.AssetCheckResult:
    missing = count_nulls(capture, table, _audited(table))
    broken = any(missing[name] for name in table.required)
    return dg.AssetCheckResult(
        asset_key=key,
        check_name="required_columns",
        passed=not any(missing.values()),
        # An id may be a text, which the column cannot contain. Whether that is an error, the checks of the raw table decide.
        severity=dg.AssetCheckSeverity.ERROR if broken else dg.AssetCheckSeverity.WARN,
        metadata={"empty": missing},
    )
