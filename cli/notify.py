"""Makes the calls of `[notify]` for runs of the command line. A sensor makes those for Dagster's own runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cli.boundary import explained_error
from cli.output import say
from pipelines.notify import Ending, notify
from pipelines.settings.settings import Settings


class NotifiedRun:
    """A run to report. Without an `ending` nothing is reported."""

    ending: Ending | None = None


@contextmanager
def notifying(settings: Settings, job: str, tenant: str) -> Iterator[NotifiedRun]:
    """Makes one call at the end of the block, however it ends. The body sets `ending`, unless it raises."""
    run = NotifiedRun()
    try:
        yield run
    except BaseException as error:
        stopped = isinstance(error, KeyboardInterrupt)
        message = (
            "Stopped before the end." if stopped else str(explained_error(error) or f"{type(error).__name__}: {error}")
        )
        run.ending = Ending(job=job, tenant=tenant, result="stopped" if stopped else "failed", message=message)
        raise
    finally:
        if run.ending is not None:
            report_ending(settings, run.ending)


def report_ending(settings: Settings, ending: Ending) -> None:
    """Make the call. A problem with it, or a stop that arrives now, is printed on stderr and changes nothing else."""
    try:
        problem = notify(settings, ending)
    except KeyboardInterrupt:
        problem = f"The {ending.job} ({ending.result}) may not have been reported: the call was stopped."
    if problem is not None:
        say(f"warning: {problem}")
