"""The common settings of all assets, jobs and schedules: key, group, pool, executor and tags."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from pipelines.settings.settings import Settings

UPKEEP = {"bookferry/upkeep": ""}
"""Tag of the assets that have jobs of their own: the nightly backup leaves them out."""

_Decorator = Callable[[Callable[..., Any]], dg.AssetsDefinition]


def v3_tenants(settings: Settings) -> list[str]:
    """The tenants of version 3: a person signs in to them, and a migration can write into them."""
    return [name for name, tenant in settings.tenants.items() if tenant.api == "v3"]


def tenant_key(tenant: str, name: str) -> dg.AssetKey:
    """The key of a tenant's asset."""
    return dg.AssetKey([tenant, name])


def tenant_keys(tenant: str, names: Iterable[str]) -> list[dg.AssetKey]:
    """The keys of several assets of a tenant."""
    return [tenant_key(tenant, name) for name in names]


def upkeep_asset(
    tenant: str,
    name: str,
    *,
    made_from: Iterable[str] = (),
    checks: Mapping[str, str] | None = None,
    pooled: bool = True,
    **options: Any,
) -> _Decorator:
    """Decorates the generator that makes an asset with a job of its own. `options` are those of `dagster.AssetSpec`.

    `made_from` names assets of the same tenant, `checks` maps check names to descriptions. Steps in the tenant's pool run one after the
    other.

    A run that makes other assets, too, leaves it out: whoever materializes all of a library's assets wants a backup, and does not write
    into a library, renew a sign-in or restore a snapshot by the way.
    """

    def decorate(function: Callable[..., Iterator[Any]]) -> dg.AssetsDefinition:
        @functools.wraps(function)
        def unless_by_the_way(*context_if_wanted: Any, **arguments: Any) -> Iterator[Any]:
            context = dg.AssetExecutionContext.get()
            if _is_upkeep_alone(context):
                yield from function(*context_if_wanted, **arguments)
            else:
                context.log.info("Left out: %s has a job of its own. Run that, or materialize this asset alone.", name)

        spec = dg.AssetSpec(
            tenant_key(tenant, name),
            deps=tenant_keys(tenant, made_from),
            description=options.pop("description", None) or inspect.getdoc(function),
            group_name=tenant,
            skippable=True,
            tags=UPKEEP,
            **options,
        )
        return dg.multi_asset(
            name=f"{tenant}__{name}",
            specs=[spec],
            check_specs=[check_spec(tenant, name, check, text) for check, text in (checks or {}).items()],
            can_subset=True,  # so that its checks may be left out, too
            pool=tenant if pooled else None,
        )(unless_by_the_way)

    return decorate


def _is_upkeep_alone(context: dg.AssetExecutionContext) -> bool:
    """Whether every asset of the run is one with a job of its own."""
    assets = context.job_def.asset_layer
    return all(assets.get(key).tags.keys() >= UPKEEP.keys() for key in assets.selected_asset_keys)


def check_spec(tenant: str, asset: str, check: str, description: str) -> dg.AssetCheckSpec:
    """A check of a tenant's asset."""
    return dg.AssetCheckSpec(check, asset=tenant_key(tenant, asset), description=description)


def run_settings(max_seconds: int) -> dict[str, Any]:
    """Executor and tags of every job: one process, no retry, and an end after `max_seconds`.

    Dagster's own retries would turn a person's "Terminate" into another try. Our client retries requests; nothing else does.
    """
    return {
        "executor_def": dg.in_process_executor,
        "tags": {"dagster/max_retries": "0", "dagster/max_runtime": str(max_seconds)},
    }


def tenants_job(name: str, asset: str, tenants: Iterable[str], description: str, max_seconds: int) -> Any:
    """The job that makes one asset of every tenant."""
    selection = dg.AssetSelection.assets(*(tenant_key(tenant, asset) for tenant in tenants))
    return dg.define_asset_job(name, selection=selection, description=description, **run_settings(max_seconds))


def job_schedule(
    settings: Settings, job: str, hours: int, *, weekday: str = "*", day: str = "*"
) -> dg.ScheduleDefinition:
    """The schedule of a job, so many hours after the nightly backup is due, running from the start."""
    return dg.ScheduleDefinition(
        name=f"{job}_schedule",
        job_name=job,
        cron_schedule=cron(settings, hours, weekday=weekday, day=day),
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )


def cron(settings: Settings, hours: int, *, weekday: str = "*", day: str = "*") -> str:
    """The cron expression for so many hours after the nightly backup: daily, on one day of the week (`SUN`), or on one of the month."""
    hour, minute = map(int, settings.nightly_at.split(":"))
    return f"{minute} {(hour + hours) % 24} {day} * {weekday}"


def now_utc() -> datetime:
    """The present, for sensors and schedules; tests pass another function."""
    return datetime.now(UTC)
