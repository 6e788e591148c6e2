"""Says which configuration this code location works with: it reads bookferry.toml once, when Dagster loads it."""

import json

import dagster as dg

from assets_defs.factories import now_utc
from pipelines.errors import ConfigurationError
from pipelines.settings.config_file import load_settings
from pipelines.settings.settings import Settings
from resources.run_tags import loaded_configuration

SENSOR_SECONDS = 30
"""Between two evaluations of the sensor."""


def configuration_watch(settings: Settings) -> dg.SensorDefinition:
    """A sensor that notes in Dagster's history what was loaded, for `doctor` and `status`. Red while the file says otherwise."""

    @dg.sensor(
        name="configuration",
        minimum_interval_seconds=SENSOR_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Red while bookferry.toml has changed since it was loaded. Sends no request.",
    )
    def configuration(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        loaded = {"at": now_utc().isoformat(), "tenants": settings.fingerprints}
        context.instance.daemon_cursor_storage.set_cursor_values({loaded_configuration(settings): json.dumps(loaded)})
        try:
            changed = load_settings(settings.path).fingerprints != settings.fingerprints
        except ConfigurationError as error:
            raise dg.Failure(f"{error} Schedules go on with the file as it was when it was loaded.") from error
        if changed:
            raise dg.Failure(
                f"{settings.path} has changed since it was loaded, and schedules go on as before. Restart `bookferry ui`, or press "
                "Reload on the page Deployment."
            )
        return dg.SkipReason("bookferry.toml is as it was loaded.")

    return configuration
