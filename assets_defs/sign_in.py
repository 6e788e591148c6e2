"""Sign-ins to v3 as assets. A job renews them once a day, and a sensor warns before one ends.

The sensor sends no request: if it could not store the answer to a refresh, the sign-in would end.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

import dagster as dg

from assets_defs.events import events_of
from assets_defs.factories import (
    job_schedule,
    now_utc,
    tenant_key,
    tenants_job,
    upkeep_asset,
    v3_tenants,
)
from pipelines.backup.flow import Backup
from pipelines.scopes import abilities
from pipelines.service.clock import SystemClock
from pipelines.service.sign_in.sign_in_state import SignInState, sign_in_state
from pipelines.settings.settings import Settings
from pipelines.sign_in_health import keep_alive, warning
from pipelines.store.stores import open_data

ASSET = "sign_in"
CHECK = "lasts"
JOB = "keep_signed_in"

SENSOR_SECONDS = 3600
"""Between two evaluations of the sensor."""

MAX_SECONDS = 3600
"""A refresh is one request; it ends within an hour even with every wait that a library may ask for."""


def sign_ins(settings: Settings, now: Callable[[], datetime] = now_utc) -> dg.Definitions:
    """An asset for each v3 tenant, the sensor, and the job that renews all sign-ins; nothing without v3 tenants.

    The job runs half a day after the nightly backup, so that a person can sign in before the next one.
    """
    tenants = v3_tenants(settings)
    if not tenants:
        return dg.Definitions()
    text = "Renews the sign-in to every v3 library, so that none ends unnoticed."
    return dg.Definitions(
        assets=[_sign_in_asset(tenant) for tenant in tenants],
        jobs=[tenants_job(JOB, ASSET, tenants, text, MAX_SECONDS)],
        schedules=[job_schedule(settings, JOB, 12)],
        sensors=[_sign_in_watch(settings, tenants, now)],
    )


def _sign_in_watch(settings: Settings, tenants: Sequence[str], now: Callable[[], datetime]) -> dg.SensorDefinition:
    """Reads the stored sign-ins every hour. The check `lasts` turns red when somebody should sign in."""

    @dg.sensor(
        name="sign_in_watch",
        minimum_interval_seconds=SENSOR_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Warns before a sign-in to a v3 library ends. Sends no request.",
    )
    def sign_in_watch() -> dg.SensorResult:
        states = {tenant: sign_in_state(settings, tenant, SystemClock()) for tenant in tenants}
        warnings = {tenant: warning(state, now().timestamp()) for tenant, state in states.items()}
        data = open_data(settings)
        return dg.SensorResult(
            asset_events=[
                *events_of(
                    _result(tenant, states[tenant], warnings[tenant], is_new=not data.snapshots(tenant))
                    for tenant in tenants
                )
            ],
            skip_reason=" ".join(text for text in warnings.values() if text) or "No sign-in ends soon.",
        )

    return sign_in_watch


def _sign_in_asset(tenant: str) -> dg.AssetsDefinition:
    @upkeep_asset(
        tenant,
        ASSET,
        kinds={"oauth2"},
        pooled=False,
        checks={CHECK: "Nobody has to sign in soon."},
    )
    def sign_in(backup: dg.ResourceParam[Backup]) -> Iterator[dg.MaterializeResult]:
        """A person's sign-in to this library, renewed. Dagster never receives the tokens."""
        backup.data.prepare()
        keep_alive(backup.settings, tenant, state=backup.data.state)
        state = sign_in_state(backup.settings, tenant, SystemClock())
        advice = warning(state, now_utc().timestamp())
        result = _result(tenant, state, advice, is_new=False)
        yield dg.MaterializeResult(metadata=_metadata(state), check_results=[result])

    return sign_in


def _metadata(state: SignInState) -> dict[str, Any]:
    return {
        "scopes": " ".join(state.scopes),
        **{ability.job.name: ability.sentence for ability in abilities(state.scopes)},
        "signed_in_at": _time(state.signed_in_at),
        "renewed_at": _time(state.renewed_at),
        "kept_in": state.place,
    }


def _time(seconds: float | None) -> dg.MetadataValue:
    return dg.MetadataValue.null() if seconds is None else dg.MetadataValue.timestamp(seconds)


def _result(tenant: str, state: SignInState, advice: str | None, *, is_new: bool) -> dg.AssetCheckResult:
    """`is_new`: whether the library has no backup yet, so that nothing that was good has become bad."""
    return dg.AssetCheckResult(
        asset_key=tenant_key(tenant, ASSET),
        check_name=CHECK,
        passed=advice is None,
        severity=dg.AssetCheckSeverity.ERROR if state.problem and not is_new else dg.AssetCheckSeverity.WARN,
        description=advice,
    )
