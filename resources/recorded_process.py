"""Records in a run which process executes it."""

import dagster as dg

from pipelines.settings.settings import Settings
from resources.run_tags import process_tags


def record_process(context: dg.InitResourceContext, settings: Settings) -> None:
    """Tag the run of a resource with its process. A re-execution has the tags of the run that it repeats, and gets its own."""
    if context.run is not None and context.instance is not None:
        context.instance.add_run_tags(context.run.run_id, process_tags(settings, context.run.run_id))
