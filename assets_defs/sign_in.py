"""Sign-ins to v3 as assets: renewed once a day, so that none lapses unseen, and watched, so that somebody is warned while there is time.

The watch asks the library for nothing: a refresh whose answer it could not keep would end the sign-in that it looks after.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from assets_defs.schedules import UPKEEP, cron
from pipelines.backup.flow import Backup
from pipelines.scopes import abilities
from pipelines.service.clock import SystemClock
from pipelines.service.sign_in.token_refresh import SignInState, sign_in_state
from pipelines.settings.settings import Settings
from pipelines.sign_in_health import keep_alive, warning

CHECK = "lasts"
JOB = "keep_signed_in"

LOOK_SECONDS = 3600
"""Between two looks of the watch."""

MAX_SECONDS = 3600
"""A refresh is one request; with every wait that a library may ask for, it is over within the hour."""

HALF_A_DAY = 12


def signed_in_tenants(settings: Settings) -> list[str]:
    """The tenants that a person signs in to (v3)."""
    return [name for name, tenant in settings.tenants.items() if tenant.api == "v3"]


def sign_in_assets(settings: Settings) -> list[dg.AssetsDefinition]:
    """One asset for the sign-in of each v3 tenant."""
    return [_sign_in_asset(tenant) for tenant in signed_in_tenants(settings)]


def sign_in_job(settings: Settings) -> list[Any]:
    """The job that renews them all; none where there are none."""
    tenants = signed_in_tenants(settings)
    if not tenants:
        return []
    job = dg.define_asset_job(
        JOB,
        selection=dg.AssetSelection.assets(*(_key(tenant) for tenant in tenants)),
        description="Renews the sign-in of every v3 library, so that none lapses unseen.",
        executor_def=dg.in_process_executor,
        tags={"dagster/max_retries": "0", "dagster/max_runtime": str(MAX_SECONDS)},
    )
    return [job]


def sign_in_schedule(settings: Settings) -> Sequence[dg.ScheduleDefinition]:
    """Once a day, half a day away from the nightly backup: when it fails, somebody is there to sign in before the night."""
    if not signed_in_tenants(settings):
        return []
    hour, minute = settings.nightly_at.split(":")
    moment = f"{(int(hour) + HALF_A_DAY) % 24:02}:{minute}"
    return [
        dg.ScheduleDefinition(
            name="keep_signed_in_schedule",
            job_name=JOB,
            cron_schedule=cron(moment),
            execution_timezone=settings.timezone,
            default_status=dg.DefaultScheduleStatus.RUNNING,
            description=f"Every day at {moment} ({settings.timezone}).",
        )
    ]


def _now() -> datetime:
    return datetime.now(UTC)


def sign_in_watch(settings: Settings, now: Callable[[], datetime] = _now) -> Sequence[dg.SensorDefinition]:
    """Looks at what is kept, every hour, and says so in the check `lasts` when somebody should sign in."""
    tenants = signed_in_tenants(settings)
    if not tenants:
        return []

    @dg.sensor(
        name="sign_in_watch",
        minimum_interval_seconds=LOOK_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Warns before a sign-in to a v3 library ends. Sends no request.",
    )
    def sign_in_watch() -> dg.SensorResult:
        states = {tenant: sign_in_state(settings, tenant, SystemClock()) for tenant in tenants}
        warnings = {tenant: warning(state, now().timestamp()) for tenant, state in states.items()}
        return dg.SensorResult(
            asset_events=[_evaluation(tenant, states[tenant], warnings[tenant]) for tenant in tenants],
            skip_reason=" ".join(text for text in warnings.values() if text) or "All sign-ins last.",
        )

    return [sign_in_watch]


def _key(tenant: str) -> dg.AssetKey:
    return dg.AssetKey([tenant, "sign_in"])


def _sign_in_asset(tenant: str) -> dg.AssetsDefinition:
    @dg.asset(
        key=_key(tenant),
        group_name=tenant,
        kinds={"oauth2"},
        tags=dict([UPKEEP]),
        check_specs=[dg.AssetCheckSpec(CHECK, asset=_key(tenant), description="Nobody has to sign in soon.")],
    )
    def sign_in(library: dg.ResourceParam[Backup]) -> Iterator[dg.MaterializeResult]:
        """The sign-in of a person to this library, renewed. The tokens themselves are never shown here."""
        library.data.prepare()
        keep_alive(library.settings, tenant, state=library.data.state_path)
        state = sign_in_state(library.settings, tenant, SystemClock())
        advice = warning(state, _now().timestamp())
        yield dg.MaterializeResult(
            metadata=_metadata(state),
            check_results=[_result(advice)],
        )

    return sign_in


def _metadata(state: SignInState) -> dict[str, Any]:
    shown = {ability.job.name: ability.sentence for ability in abilities(state.scopes)}
    return {
        "scopes": " ".join(state.scopes),
        **shown,
        "signed_in_at": _time(state.signed_in_at),
        "renewed_at": _time(state.renewed_at),
        "kept_in": state.place,
    }


def _time(seconds: float | None) -> dg.MetadataValue:
    return dg.MetadataValue.null() if seconds is None else dg.MetadataValue.timestamp(seconds)


def _result(advice: str | None) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=CHECK,
        passed=advice is None,
        severity=dg.AssetCheckSeverity.WARN,
        description=advice,
    )


def _evaluation(tenant: str, state: SignInState, advice: str | None) -> dg.AssetCheckEvaluation:
    severity = dg.AssetCheckSeverity.ERROR if state.problem else dg.AssetCheckSeverity.WARN
    return dg.AssetCheckEvaluation(
        asset_key=_key(tenant), check_name=CHECK, passed=advice is None, severity=severity, description=advice
    )
