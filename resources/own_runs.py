"""Which runs of a Dagster instance are this Bookferry's: other code locations, and other Bookferries, may share the instance."""

import dagster as dg

from pipelines.settings.settings import Settings
from resources.run_tags import DATA, TENANT, data_address


def is_own(settings: Settings, context: dg.SensorEvaluationContext, run: dg.DagsterRun) -> bool:
    """Whether a run works on the data of these settings.

    A run says so itself from its first step on. Before that, a run counts that Dagster launched from the code location of the sensor, and
    one of the command line that is for a tenant of the settings.
    """
    if (data := run.tags.get(DATA)) is not None:
        return data == data_address(settings)
    if run.remote_job_origin is None:
        return run.tags.get(TENANT) in settings.tenants
    location = context.code_location_origin
    return location is not None and location.location_name == location_of(run)


def location_of(run: dg.DagsterRun) -> str | None:
    """The code location that a run was launched from; None for one of the command line."""
    origin = run.remote_job_origin
    return origin.repository_origin.code_location_origin.location_name if origin is not None else None
