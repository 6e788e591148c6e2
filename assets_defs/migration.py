"""A library moved into another: a plan, its load once a person has approved it, and the proof. One of each for every library of version 3.

A plan says of itself what it would write; the load takes its name and its seal, which a person copies from there, and nothing else: what
was looked at is what is written.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from assets_defs.metadata import MOST_SHOWN, preview
from assets_defs.schedules import UPKEEP
from pipelines.migration.apply.run import Limits, Selection
from pipelines.migration.flow import Migration
from pipelines.migration.model.plan import HTML, MARKDOWN
from pipelines.migration.report.pages import plan_picture, proof_picture
from pipelines.settings.settings import Settings

if TYPE_CHECKING:
    from pipelines.migration.flow import Result
    from pipelines.migration.model.plan import Plan
    from pipelines.migration.verify.run import MigrationVerification

PLAN, LOAD, PROOF = "migration_plan", "migration", "migration_proof"
"""The assets of a library that is moved into."""

JOBS = {PLAN: "plan_migration", LOAD: "apply_migration", PROOF: "verify_migration"}

MAX_SECONDS = 14 * 24 * 3600
"""100,000 records with files take days at 60 requests a minute."""

_TOLD = {
    PLAN: "Works out what moving a snapshot into a library would write, and writes nothing.",
    LOAD: "Writes what a plan says, once a person has approved it.",
    PROOF: "Reads the library again and compares every record with the plan.",
}


class PlanConfig(dg.Config):
    """What is moved."""

    source: str
    """A tenant, for its newest snapshot that holds all publications, or TENANT/SNAPSHOT."""
    resources: list[str] = Field(default_factory=list)
    """What is moved beside the publications and their files: users, authorities, collections, hard_copies, tasks."""
    overwrite: bool = False
    """Where both sides hold something else, the source's value counts: for putting a snapshot back."""


class LoadConfig(dg.Config):
    """What is approved."""

    plan: str
    approval: str
    """The first eight characters of the plan's seal at least, as its plan shows it: whoever writes them here approves it."""
    limit: int = 0
    """Records at most, 0 for all of them."""
    actions: list[str] = Field(default_factory=list)
    ids: list[int] = Field(default_factory=list)
    max_failures: int = Limits.failures
    max_failures_percent: float = Limits.failures_percent
    max_touched_percent: float = Limits.touched_percent


class ProofConfig(dg.Config):
    """What is proved."""

    plan: str
    contents: bool = False
    """Fetch every file again and compare its bytes."""
    evidence: str = ""
    """Folder that is made, to be kept: a bag of the plan, what was written, and what the library then held."""


def migration_assets(settings: Settings) -> list[dg.AssetsDefinition]:
    """Those of every library that can be moved into."""
    found: list[dg.AssetsDefinition] = []
    for name, tenant in settings.tenants.items():
        if tenant.api == "v3":
            found += [_plan_asset(name), _load_asset(name), _proof_asset(name)]
    return found


def migration_jobs(settings: Settings) -> list[Any]:
    """A job for each step; a person starts each of them, and there is no schedule."""
    targets = [name for name, tenant in settings.tenants.items() if tenant.api == "v3"]
    return [
        dg.define_asset_job(
            JOBS[asset],
            selection=dg.AssetSelection.assets(*(dg.AssetKey([name, asset]) for name in targets)),
            description=f"{_TOLD[asset]} Materialize it for one library at a time.",
            executor_def=dg.in_process_executor,
            tags={"dagster/max_retries": "0", "dagster/max_runtime": str(MAX_SECONDS)},
        )
        for asset in (JOBS if targets else ())
    ]


def _plan_asset(tenant: str) -> dg.AssetsDefinition:
    @dg.asset(
        key=[tenant, PLAN],
        group_name=tenant,
        kinds={"parquet"},
        tags=dict([UPKEEP]),
        pool=tenant,
        description=_TOLD[PLAN],
    )
    def migration_plan(config: PlanConfig, migration: dg.ResourceParam[Migration]) -> dg.MaterializeResult:
        return dg.MaterializeResult(
            metadata=_plan_metadata(
                migration.plan_from(config.source, tenant, overwrite=config.overwrite, resources=config.resources)
            )
        )

    return migration_plan


def _load_asset(tenant: str) -> dg.AssetsDefinition:
    @dg.asset(
        key=[tenant, LOAD],
        group_name=tenant,
        kinds={"json"},
        tags=dict([UPKEEP]),
        pool=tenant,
        deps=[dg.AssetKey([tenant, PLAN])],
        description=_TOLD[LOAD],
    )
    def migration_load(config: LoadConfig, migration: dg.ResourceParam[Migration]) -> dg.MaterializeResult:
        limits = Limits(config.max_failures, config.max_failures_percent, config.max_touched_percent)
        selection = Selection(config.limit or None, tuple(config.actions), tuple(config.ids))
        plan = migration.approved(config.plan, config.approval, tenant)
        return dg.MaterializeResult(metadata=_load_metadata(migration.apply(plan, limits=limits, selection=selection)))

    return migration_load


def _proof_asset(tenant: str) -> dg.AssetsDefinition:
    key = dg.AssetKey([tenant, PROOF])

    @dg.asset(
        key=key,
        group_name=tenant,
        kinds={"json"},
        tags=dict([UPKEEP]),
        pool=tenant,
        deps=[dg.AssetKey([tenant, LOAD])],
        description=_TOLD[PROOF],
        check_specs=[
            dg.AssetCheckSpec("equal", asset=key, description="The library holds what the plan says (I8, I12).")
        ],
    )
    def migration_proof(config: ProofConfig, migration: dg.ResourceParam[Migration]) -> Any:
        found = migration.verify_named(
            config.plan, tenant, contents=config.contents, evidence=Path(config.evidence) if config.evidence else None
        )
        metadata = _proof_metadata(found)
        yield dg.AssetCheckResult(check_name="equal", passed=found.equal, metadata=metadata)
        yield dg.MaterializeResult(metadata=metadata)

    return migration_proof


def _plan_metadata(plan: "Plan") -> Mapping[str, Any]:
    facts = plan.facts
    rows = [(resource, action, count) for resource, counts in facts.counts.items() for action, count in counts.items()]
    return {
        "picture": dg.MetadataValue.md(plan_picture(plan, now=datetime.now(UTC))),
        "plan": facts.plan,
        "approval": facts.approval,
        "counts": preview(("resource", "action", "records"), rows),
        "files": facts.files.upload,
        "requests": facts.requests,
        "minutes": facts.minutes,
        "notes": facts.notes,
        "page": dg.MetadataValue.path(str(plan.path(HTML))),
        "markdown": dg.MetadataValue.path(str(plan.path(MARKDOWN))),
    }


def _load_metadata(result: "Result") -> Mapping[str, Any]:
    applied = result.applied
    failures = [(one.resource, one.source_id, one.title, one.problem) for one in applied.failures[:MOST_SHOWN]]
    return {
        "created": applied.created,
        "patched": applied.patched,
        "unchanged": applied.unchanged,
        "failed": applied.failed,
        "files_uploaded": applied.files_uploaded,
        "complete": applied.complete,
        "requests": result.requests,
        "failures": preview(("resource", "record", "title", "problem"), failures),
    }


def _proof_metadata(found: "MigrationVerification") -> Mapping[str, Any]:
    rows: Sequence[tuple[Any, ...]] = [
        (one.problem, one.resource, one.source_id, one.target_id, one.field) for one in found.findings[:MOST_SHOWN]
    ]
    return {
        "picture": dg.MetadataValue.md(proof_picture(found)),
        "equal": found.equal,
        "compared": found.compared,
        "missing": found.missing,
        "duplicated": found.duplicated,
        "differing": found.differing,
        "files_checked": found.files_checked,
        "findings": preview(("problem", "resource", "record", "in the target", "field"), rows),
    }
