"""Which runs of a Dagster instance are this Bookferry's: other code locations, and other Bookferries, may share the instance."""

import dagster as dg

from pipelines.settings.settings import Settings
from resources.run_tags import DATA, data_address


def is_own(settings: Settings, context: dg.SensorEvaluationContext, run: dg.DagsterRun) -> bool:
    """Whether a run works on the data of these settings.

    A run says so itself from its first step on. Before that, a run counts that Dagster launched from the code location of the sensor.
    """
    if (data := run.tags.get(DATA)) is not None:
        return data == data_address(settings)
    location, origin = context.code_location_origin, run.remote_job_origin
    if location is None or origin is None:
        return False
    return location.location_name == origin.repository_origin.code_location_origin.location_name
