"""The assets of a backup, for one tenant: a raw table, the tables staged from it, and the snapshot that publishes them.

Write, audit, publish: the checks show in red what makes a snapshot partial; a partial snapshot is still published, as partial, so that
what could be read is not lost, and never becomes the newest complete one (I4, I5).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import dagster as dg

from assets_defs.metadata import column_lineage, column_schema, preview, table_metadata
from assets_defs.stops import stop_explained
from pipelines.backup.flow import Backup
from pipelines.records.tables.description import Table
from pipelines.records.tables.publications import PUBLICATION_FILES
from pipelines.records.tables.registry import STAGED, raw_table
from pipelines.store.snapshots.captures import Capture, ResourceFacts, Unreadable, count_nulls

PUBLICATIONS = "publications"
"""The resource whose records name files."""

_CONTENTS = {
    "file": "Table of the snapshot, as Parquet.",
    "rows": "Rows in it.",
    "bytes": "Its size.",
    "sha256": "SHA-256 of the file.",
}
"""Column → meaning, of what Dagster shows of a snapshot."""


def tenant_assets(
    tenant: str, resources: Sequence[str], fresh: dg.FreshnessPolicy | None = None
) -> list[dg.AssetsDefinition]:
    """All assets of one tenant, under its name as key prefix and in its own pool."""
    parts = [
        asset for resource in resources for asset in (_raw_asset(tenant, resource), _staged_assets(tenant, resource))
    ]
    return [*parts, _snapshot_asset(tenant, resources, fresh)]


def tenant_keys(tenant: str, resources: Iterable[str]) -> list[dg.AssetKey]:
    """The keys of a tenant's assets for the given resources, the snapshot and its report included."""
    names = [
        name for resource in resources for name in (f"raw_{resource}", *(table.name for table in STAGED[resource]))
    ]
    names += ["files", "report"] if PUBLICATIONS in resources else []
    return [dg.AssetKey([tenant, name]) for name in (*names, "snapshot")]


def run_name(context: dg.AssetExecutionContext) -> str:
    """What the steps of one run, and of its re-executions, have in common."""
    return context.run.root_run_id or context.run.run_id


def _read_by_run(context: dg.AssetExecutionContext, tenant: str) -> list[str]:
    """The resources of a tenant that this run reads."""
    selected = (key.path for key in context.job_def.asset_layer.selected_asset_keys)
    return [path[-1].removeprefix("raw_") for path in selected if path[0] == tenant and path[-1].startswith("raw_")]


def _raw_asset(tenant: str, resource: str) -> dg.AssetsDefinition:
    table = raw_table(resource)
    key = dg.AssetKey([tenant, table.name])

    @dg.asset(
        key=key,
        group_name=tenant,
        kinds={"parquet"},
        pool=tenant,
        description=table.comment,
        metadata={"dagster/column_schema": column_schema(table)},
        check_specs=[
            dg.AssetCheckSpec(
                "count_equals_x_total", asset=key, description="Distinct ids = X-Total, which stood still (I4)."
            ),
            dg.AssetCheckSpec("ids_unique", asset=key, description="Every record has an id, and no id occurs twice."),
            dg.AssetCheckSpec("readable", asset=key, description="The service lets us read it, and we understand it."),
        ],
    )
    def raw(context: dg.AssetExecutionContext, library: dg.ResourceParam[Backup]) -> dg.MaterializeResult:
        with stop_explained(context, tenant, library.settings.tenant(tenant)):
            capture, facts = library.read_raw(tenant, run_name(context), resource, _read_by_run(context, tenant))
        if isinstance(facts, Unreadable):
            return _not_read(facts)
        shown = table_metadata(capture, table, facts.requests)
        return dg.MaterializeResult(
            metadata={**shown, "pages": facts.pages, "endpoint": facts.endpoint},
            check_results=[
                _count_check(facts),
                _ids_check(facts),
                dg.AssetCheckResult(passed=True, check_name="readable"),
            ],
        )

    return raw


def _not_read(found: Unreadable) -> dg.MaterializeResult:
    """A raw table that is not there: a warning, and an error where the snapshot is partial without it."""
    severity = dg.AssetCheckSeverity.ERROR if found.partial else dg.AssetCheckSeverity.WARN
    why: dict[str, Any] = {"not_read": found.message, "missing_scopes": found.missing_scopes}
    return dg.MaterializeResult(
        metadata={"dagster/row_count": 0, "requests": found.requests, "not_read": found.message},
        check_results=[
            dg.AssetCheckResult(passed=False, check_name=name, severity=severity, metadata=why)
            for name in ("readable", "count_equals_x_total", "ids_unique")
        ],
    )


def _staged_assets(tenant: str, resource: str) -> dg.AssetsDefinition:
    tables = [table for table in STAGED[resource] if table != PUBLICATION_FILES]  # which the files step makes
    keys = {table.name: dg.AssetKey([tenant, table.name]) for table in tables}

    @dg.multi_asset(
        name=f"{tenant}__stage_{resource}",
        group_name=tenant,
        pool=tenant,
        specs=[table_spec(tenant, table, [f"raw_{resource}"]) for table in tables],
        check_specs=[required_spec(tenant, table) for table in tables],
    )
    def staged(context: dg.AssetExecutionContext, library: dg.ResourceParam[Backup]) -> Iterator[dg.MaterializeResult]:
        capture = library.stage(tenant, run_name(context), resource)
        unreadable = capture.facts.unreadable.get(resource)
        for table in tables:
            yield (
                no_table(unreadable, keys[table.name]) if unreadable else staged_table(capture, table, keys[table.name])
            )

    return staged


def table_spec(tenant: str, table: Table, made_from: Sequence[str]) -> dg.AssetSpec:
    """The asset that a staged table is."""
    return dg.AssetSpec(
        dg.AssetKey([tenant, table.name]),
        deps=[dg.AssetKey([tenant, name]) for name in made_from],
        description=table.comment,
        kinds={"parquet"},
        metadata={"dagster/column_schema": column_schema(table)},
    )


def required_spec(tenant: str, table: Table) -> dg.AssetCheckSpec:
    """The check of a staged table."""
    return dg.AssetCheckSpec(
        "required_columns",
        asset=dg.AssetKey([tenant, table.name]),
        description=f"Filled in every row: {', '.join(_audited(table))}.",
    )


def staged_table(capture: Capture, table: Table, key: dg.AssetKey) -> dg.MaterializeResult:
    """A finished table, and its check."""
    return dg.MaterializeResult(
        asset_key=key,
        metadata={
            **table_metadata(capture, table, requests=0),
            "dagster/column_lineage": column_lineage(capture.facts.tenant, table),
        },
        check_results=[_required_check(capture, table, key)],
    )


def no_table(unreadable: Unreadable, key: dg.AssetKey) -> dg.MaterializeResult:
    """A table of a resource that could not be read: the check of its raw table says so."""
    why: dict[str, Any] = {"dagster/row_count": 0, "requests": 0, "not_read": unreadable.message}
    check = dg.AssetCheckResult(
        asset_key=key, check_name="required_columns", passed=True, metadata={"not_read": unreadable.message}
    )
    return dg.MaterializeResult(asset_key=key, metadata=why, check_results=[check])


def _snapshot_asset(tenant: str, resources: Sequence[str], fresh: dg.FreshnessPolicy | None) -> dg.AssetsDefinition:
    key = dg.AssetKey([tenant, "snapshot"])

    @dg.asset(
        key=key,
        group_name=tenant,
        kinds={"parquet", "duckdb"},
        pool=tenant,
        deps=[dg.AssetKey([tenant, table.name]) for resource in resources for table in STAGED[resource]]
        + ([dg.AssetKey([tenant, "files"])] if PUBLICATIONS in resources else []),
        metadata={
            "dagster/column_schema": dg.TableSchema(
                columns=[dg.TableColumn(name, description=meaning) for name, meaning in _CONTENTS.items()]
            )
        },
        freshness_policy=fresh,
        check_specs=[dg.AssetCheckSpec("complete", asset=key, description="The snapshot is proved complete (I4).")],
    )
    def snapshot(context: dg.AssetExecutionContext, library: dg.ResourceParam[Backup]) -> dg.MaterializeResult:
        """A whole backup with its proof: published at once, or not at all (I5)."""
        published = library.publish(tenant, run_name(context))
        manifest = published.manifest
        return dg.MaterializeResult(
            metadata={
                "snapshot": manifest.snapshot,
                "complete": manifest.complete,
                "problems": _listed(manifest.problems),
                "notes": _listed(manifest.notes),
                "dagster/row_count": sum(published.counts.values()),
                "bytes": sum(table.bytes for table in manifest.tables.values()),
                "requests": manifest.requests,
                "dagster/uri": published.uri,
                "preview": preview(
                    _CONTENTS, ((one.path, one.rows, one.bytes, one.sha256) for one in manifest.tables.values())
                ),
            },
            check_results=[
                dg.AssetCheckResult(
                    passed=manifest.complete,
                    check_name="complete",
                    metadata={"problems": manifest.problems, "notes": manifest.notes},
                )
            ],
        )

    return snapshot


def _listed(sentences: Iterable[str]) -> dg.MarkdownMetadataValue:
    return dg.MetadataValue.md("\n".join(f"- {sentence}" for sentence in sentences) or "none")


def _count_check(facts: ResourceFacts) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name="count_equals_x_total",
        passed=facts.complete,
        metadata={
            "x_total": facts.x_total if facts.x_total is not None else "not sent by the service",
            "distinct_ids": facts.distinct_ids,
            "problems": facts.problems,
            "notes": facts.notes,
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
        # an id may be a text, which the column cannot hold: the proof of the raw table says whether anything is wrong with that
        severity=dg.AssetCheckSeverity.ERROR if broken else dg.AssetCheckSeverity.WARN,
        metadata={"empty": missing},
    )
