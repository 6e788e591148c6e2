"""What a person finds in the log of a run that was stopped: that nothing is lost, and what the next run does."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from pipelines.settings.tenant import TenantSettings


@contextmanager
def stop_explained(context: dg.AssetExecutionContext, tenant: str, chosen: TenantSettings) -> Iterator[None]:
    """A stop in this block (Terminate in the web interface, SIGTERM, Ctrl-C) is explained in the run's log, and goes on."""
    try:
        yield
    except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
        context.log.warning(
            "Stopped before the end. Nothing of %s was published and its last good snapshot is untouched. What was read is kept: the next "
            "backup of the same resources goes on from there, if it begins within %d hours of the beginning of this one (resume_hours).",
            tenant,
            chosen.resume_hours,
        )
        raise
