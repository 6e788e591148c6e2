"""The names in Dagster's history that Bookferry writes and reads: tags of runs, and a key. They never change."""

from pipelines.running_process import this_process
from pipelines.settings.settings import Settings

TENANT = "bookferry/tenant"
"""The tenant that a run is for."""

NOTIFIED = "bookferry/told"
"""When the sensor `notifications` made the calls for a run."""

ENDED_AS_DEAD = "bookferry/gone"
"""When the sensor `dead_runs` ended a run whose process was gone."""

INSTEAD_OF = "bookferry/instead_of"
"""The run whose worker was lost, of the run that the sensor `dead_runs` requested in its place."""

DATA = "bookferry/data"
"""The data that a run works on: several Bookferries may share an instance."""

PROCESS = "bookferry/process"
"""The process that executes a run, as `pipelines.running_process` names it."""


def data_address(settings: Settings) -> str:
    """The value of `DATA`: the bucket, or the folder."""
    return settings.bucket or str(settings.data)


def loaded_configuration(settings: Settings) -> str:
    """The key in Dagster's history under which the sensor `configuration` notes what it was loaded with."""
    return f"bookferry/configuration {data_address(settings)}"


def process_tags(settings: Settings, run: str) -> dict[str, str]:
    """The tags of a run that this process executes."""
    return {DATA: data_address(settings), PROCESS: this_process(run).text}
