"""The tables of a backup as Dagster shows them: their assets, their checks, and what is recorded of those of a snapshot.

Write, audit, publish: a check turns red for whatever makes a snapshot partial. A partial snapshot is published all the same, so that
nothing that was read is lost; it never becomes the newest complete one (I4, I5).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import dagster as dg

from assets_defs.factories import check_spec, tenant_key, tenant_keys
from assets_defs.metadata import column_lineage, column_schema, one_line_each, table_metadata
from pipelines.inventory import RESOURCES, nested_of
from pipelines.records.tables.description import Table
from pipelines.records.tables.publications import PUBLICATION_FILES
from pipelines.records.tables.registry import STAGED, raw_table
from pipelines.store.snapshots.facts import ResourceFacts, Unreadable
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

PUBLICATIONS = "publications"
"""The resource whose records name files."""

SNAPSHOT = "snapshot"
"""The asset that publishes a backup."""

READABLE = "readable"

_READ = {
    "count_equals_x_total": "Every record has an id. The number of different ids equals X-Total, which did not change during the listing.",
    READABLE: "The service lets the account read the resource, and its answers have the expected form.",
}
"""The checks of a raw table."""


def backup_keys(tenant: str, resources: Iterable[str]) -> list[dg.AssetKey]:
    """The keys of all assets that a backup of these resources makes, with the snapshot and its report."""
    names = [
        name for resource in resources for name in (f"raw_{resource}", *(table.name for table in STAGED[resource]))
    ]
    names += ["files", "report"] if PUBLICATIONS in resources else []
    return tenant_keys(tenant, [*names, SNAPSHOT])


def table_specs(tenant: str, resource: str) -> Iterator[dg.AssetSpec]:
    """The assets of a resource: its raw table, and the tables staged from that."""
    raw = raw_table(resource)
    yield table_spec(tenant, raw, ())
    for table in _staged_tables(resource):
        yield table_spec(tenant, table, [raw.name])


def table_checks(tenant: str, resource: str) -> Iterator[dg.AssetCheckSpec]:
    """The checks of the raw table."""
    for name, text in _READ.items():
        yield check_spec(tenant, raw_table(resource).name, name, text)


def _staged_tables(resource: str) -> list[Table]:
    return [table for table in STAGED[resource] if table != PUBLICATION_FILES]  # the files make that one


def table_results(data: DataFolder, snapshot: Snapshot) -> Iterator[dg.MaterializeResult]:
    """The tables of a published snapshot, with their checks. The files have results of their own."""
    manifest = snapshot.manifest
    for resource in RESOURCES:
        if (unreadable := manifest.unreadable.get(resource)) is not None:
            yield _unread_result(tenant_key(manifest.tenant, raw_table(resource).name), unreadable, _READ)
            for table in STAGED[resource]:
                yield _unread_result(tenant_key(manifest.tenant, table.name), unreadable)
        elif resource in manifest.resources:
            yield _raw_result(data, snapshot, resource)
            for table in STAGED[resource]:
                yield _staged_result(data, snapshot, table)


def _raw_result(data: DataFolder, snapshot: Snapshot, resource: str) -> dg.MaterializeResult:
    table = raw_table(resource)
    facts = snapshot.manifest.resources[resource]
    return dg.MaterializeResult(
        asset_key=tenant_key(snapshot.manifest.tenant, table.name),
        metadata={
            **table_metadata(data, snapshot, table, facts.requests),
            "pages": facts.pages,
            "endpoint": facts.endpoint,
        },
        check_results=[
            _count_check(facts, *_problems_of_nested(snapshot, resource)),
            dg.AssetCheckResult(passed=True, check_name=READABLE),
        ],
    )


def _unread_result(key: dg.AssetKey, unreadable: Unreadable, checks: Collection[str] = ()) -> dg.MaterializeResult:
    """The result for a table that could not be read. The checks of the raw table warn, or fail where the snapshot is partial without it."""
    severity = dg.AssetCheckSeverity.ERROR if unreadable.partial else dg.AssetCheckSeverity.WARN
    reason: dict[str, Any] = {"not_read": unreadable.message, "missing_scopes": unreadable.missing_scopes}
    return dg.MaterializeResult(
        asset_key=key,
        metadata={
            "dagster/row_count": 0,
            "requests": unreadable.requests if checks else 0,
            "not_read": unreadable.message,
        },
        check_results=[
            dg.AssetCheckResult(
                passed=False, check_name=name, severity=severity, description=unreadable.message, metadata=reason
            )
            for name in checks
        ],
    )


def table_spec(tenant: str, table: Table, made_from: Sequence[str]) -> dg.AssetSpec:
    """The asset of a table."""
    return dg.AssetSpec(
        tenant_key(tenant, table.name),
        deps=tenant_keys(tenant, made_from),
        description=table.comment,
        kinds={"parquet"},
        metadata={"dagster/column_schema": column_schema(table)},
        skippable=True,
    )


def _staged_result(data: DataFolder, snapshot: Snapshot, table: Table) -> dg.MaterializeResult:
    tenant = snapshot.manifest.tenant
    return dg.MaterializeResult(
        asset_key=tenant_key(tenant, table.name),
        metadata={
            **table_metadata(data, snapshot, table, requests=0),
            "dagster/column_lineage": column_lineage(tenant, table),
        },
    )


def _problems_of_nested(snapshot: Snapshot, resource: str) -> list[str]:
    """What is wrong with the lists that the records of a resource have at addresses of their own."""
    manifest = snapshot.manifest
    read = nested_of([resource], manifest.resources)
    problems = [problem for name in read for problem in manifest.resources[name].problems]
    return problems + [manifest.unreadable[name].message for name in nested_of([resource], manifest.unreadable)]


def _count_check(facts: ResourceFacts, *problems_of_nested: str) -> dg.AssetCheckResult:
    problems = [*facts.problems, *problems_of_nested]
    return dg.AssetCheckResult(
        check_name="count_equals_x_total",
        passed=facts.complete and not problems_of_nested,
        description=" ".join(problems),
        metadata={
            "x_total": facts.x_total if facts.x_total is not None else "not sent by the service",
            "distinct_ids": facts.distinct_ids,
            "problems": one_line_each(problems),
            "notes": one_line_each(facts.notes),
        },
    )
