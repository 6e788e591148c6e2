"""A migration as assets: the plan, its load after a person approved it, and the verification; for every v3 library.

The plan shows what it would write. The load takes the plan's name and the beginning of its seal, which a person copies from the plan's
page: so exactly the plan that the person has read is written.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from assets_defs.events import Result
from assets_defs.factories import now_utc, tenant_key, tenants_job, upkeep_asset, v3_tenants
from assets_defs.metadata import MOST_SHOWN, one_line_each, preview, single_values
from pipelines.errors import ConfigurationError
from pipelines.migration.apply.run import Selection
from pipelines.migration.flow import Migration
from pipelines.migration.limits import NO_LIMITS, Limits
from pipelines.migration.model.losses import losses_of
from pipelines.migration.model.plan import HTML
from pipelines.migration.model.wording import headline
from pipelines.settings.settings import Settings

if TYPE_CHECKING:
    from pipelines.migration.apply.run import ApplyResult
    from pipelines.migration.model.plan import Plan
    from pipelines.migration.verify.verdict import MigrationVerification

PLAN, LOAD, PROOF = "migration_plan", "migration", "migration_proof"
"""The assets of a target library."""

EQUAL = "equal"
"""The check of a verification."""

JOBS = {PLAN: "plan_migration", LOAD: "apply_migration", PROOF: "verify_migration"}
"""Asset → job."""

MAX_SECONDS = 14 * 24 * 3600
"""100,000 records with files take days at 60 requests a minute."""

_DESCRIPTIONS = {
    PLAN: "Plans what the migration of a snapshot into this library would write. Writes nothing.",
    LOAD: "Writes a plan that a person has approved.",
    PROOF: "Reads the library again and compares every record with the plan.",
}


class PlanConfig(dg.Config):
    """What to plan."""

    source: str = ""
    """A tenant, for its newest snapshot with all publications, or TENANT/SNAPSHOT."""
    resources: list[str] = Field(default_factory=list)
    """What to migrate besides the publications and their files: users, authorities, collections, hard_copies, tasks."""
    overwrite: bool = False
    """Where the two libraries differ, take the source's value: for the restore of a snapshot."""
    first_days: bool | None = None
    """Send a date that is only a year or a month as its first day. Default: as the plan before."""
    sends_invalid: bool | None = None
    """Send identifiers that break the rules of their type, too. Default: as the plan before."""


class LoadConfig(dg.Config):
    """What to write, and who approved it."""

    plan: str = ""
    approval: str = ""
    """At least the first eight characters of the plan's seal, as the plan shows it. Whoever enters them approves the plan."""
    limit: int = 0
    """The most records to write; 0 for all."""
    actions: list[str] = Field(default_factory=list)
    force: bool = False
    """Write although much of the target changes or many records fail: without safety limits."""


class ProofConfig(dg.Config):
    """What to verify."""

    plan: str = ""
    contents: bool = False
    """Fetch every file again and compare its bytes."""
    evidence: str = ""
    """Folder to create, as evidence: a bag (BagIt) of the plan, the journal and the records of the library afterwards."""


def migrations(settings: Settings) -> dg.Definitions:
    """Three assets for each v3 library, and a job for each step. A person starts it; there is no schedule."""
    targets = v3_tenants(settings)
    return dg.Definitions(
        assets=[make(tenant) for tenant in targets for make in (_plan_asset, _load_asset, _proof_asset)],
        jobs=[
            tenants_job(
                job, asset, targets, f"{_DESCRIPTIONS[asset]} Materialize it for one library at a time.", MAX_SECONDS
            )
            for asset, job in JOBS.items()
            if targets
        ],
    )


def _plan_asset(tenant: str) -> dg.AssetsDefinition:
    @upkeep_asset(tenant, PLAN, kinds={"parquet"}, description=_DESCRIPTIONS[PLAN])
    def migration_plan(config: PlanConfig, migration: dg.ResourceParam[Migration]) -> Iterator[Result]:
        _check_given(tenant, PLAN, source=config.source)
        plan = migration.plan(
            migration.find_source(config.source),
            tenant,
            overwrite=config.overwrite,
            resources=config.resources,
            first_days=config.first_days,
            sends_invalid=config.sends_invalid,
        )
        yield from plan_results(plan)

    return migration_plan


def _load_asset(tenant: str) -> dg.AssetsDefinition:
    @upkeep_asset(tenant, LOAD, kinds={"json"}, made_from=[PLAN], description=_DESCRIPTIONS[LOAD])
    def migration_load(config: LoadConfig, migration: dg.ResourceParam[Migration]) -> Iterator[Result]:
        _check_given(tenant, LOAD, plan=config.plan, approval=config.approval)
        limits = NO_LIMITS if config.force else Limits()
        selection = Selection(config.limit or None, tuple(config.actions))
        plan = migration.approved(config.plan, config.approval, tenant)
        yield from load_results(plan, migration.apply(plan, limits=limits, selection=selection))

    return migration_load


def _proof_asset(tenant: str) -> dg.AssetsDefinition:
    @upkeep_asset(
        tenant,
        PROOF,
        kinds={"json"},
        made_from=[LOAD],
        description=_DESCRIPTIONS[PROOF],
        checks={EQUAL: "Every record of the library equals the plan."},
    )
    def migration_proof(config: ProofConfig, migration: dg.ResourceParam[Migration]) -> Iterator[Result]:
        _check_given(tenant, PROOF, plan=config.plan)
        evidence = Path(config.evidence) if config.evidence else None
        yield from proof_results(
            tenant, migration.verify_named(config.plan, tenant, contents=config.contents, evidence=evidence)
        )

    return migration_proof


def _check_given(tenant: str, asset: str, **values: str) -> None:
    """Raises `ConfigurationError` for an empty value. No value is demanded by its type: Dagster would demand it of a backup, too."""
    missing = [name for name, value in values.items() if not value]
    if missing:
        raise ConfigurationError(
            f"The launchpad of {JOBS[asset]} lacks {' and '.join(missing)}: enter that "
            f"under ops, {tenant}__{asset}, config."
        )


def plan_results(plan: "Plan") -> Iterator[Result]:
    """A plan, with what it would write."""
    key, version = tenant_key(plan.facts.target.tenant, PLAN), dg.DataVersion(plan.name)
    yield dg.MaterializeResult(asset_key=key, metadata=_plan_metadata(plan), data_version=version)


def load_results(plan: "Plan", applied: "ApplyResult") -> Iterator[Result]:
    """What was written of a plan."""
    key, version = tenant_key(plan.facts.target.tenant, LOAD), dg.DataVersion(f"{plan.name} {now_utc()}")
    yield dg.MaterializeResult(asset_key=key, metadata=_load_metadata(applied), data_version=version)


def proof_results(tenant: str, verification: "MigrationVerification") -> Iterator[Result]:
    """The verification of a plan in the library of a tenant, with its check."""
    metadata = _proof_metadata(verification)
    check = dg.AssetCheckResult(check_name=EQUAL, passed=verification.equal, metadata=metadata)
    yield dg.MaterializeResult(asset_key=tenant_key(tenant, PROOF), metadata=metadata, check_results=[check])


def _plan_metadata(plan: "Plan") -> Mapping[str, Any]:
    facts = plan.facts
    rows = [(resource, action, count) for resource, counts in facts.counts.items() for action, count in counts.items()]
    lost = (f"Will not arrive: {loss}" for loss in losses_of(plan))
    return {
        "summary": one_line_each([*lost, *headline(facts, datetime.now(UTC))]),
        "plan": facts.plan,
        "approval": facts.approval,
        "counts": preview(("resource", "action", "records"), rows),
        "files": facts.files.upload,
        "requests": facts.requests,
        "minutes": facts.minutes,
        "notes": one_line_each(facts.notes),
        "page": dg.MetadataValue.path(str(plan.path(HTML))),
    }


def _load_metadata(applied: "ApplyResult") -> Mapping[str, Any]:
    failures = [(row.resource, row.source_id, row.title, row.problem) for row in applied.failures[:MOST_SHOWN]]
    return {
        **single_values(applied),
        "complete": applied.complete,
        "lacking": applied.lacking.total,
        "failures": preview(("resource", "record", "title", "problem"), failures),
    }


def _proof_metadata(verification: "MigrationVerification") -> Mapping[str, Any]:
    rows: Sequence[tuple[Any, ...]] = [
        (row.code, row.resource, row.source_id, row.target_id, row.field) for row in verification.findings[:MOST_SHOWN]
    ]
    return {
        **single_values(verification),
        "lacking": verification.lacking.total,
        "findings": preview(("code", "resource", "record", "in the target", "field"), rows),
    }
