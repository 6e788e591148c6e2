"""Tells whom bookferry.toml names how a command's run ended; Dagster's own runs are told by its sensor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cli.boundary import is_stop, known
from cli.output import Output
from pipelines.notify import Ending, notify
from pipelines.settings.settings import Settings


class NotifiedRun:
    """What is to be told at the end; without an `ending`, nothing."""

    ending: Ending | None = None


@contextmanager
def notifying(settings: Settings, job: str, tenant: str, output: Output) -> Iterator[NotifiedRun]:
    """One call at the end of the block, however it ends; the body says in `ending` how, unless it raises."""
    this = NotifiedRun()
    try:
        yield this
    except BaseException as error:
        stopped = is_stop(error)
        message = "Stopped before the end." if stopped else str(known(error) or f"{type(error).__name__}: {error}")
        this.ending = Ending(job=job, tenant=tenant, result="stopped" if stopped else "failed", message=message)
        raise
    finally:
        if this.ending is not None:
            tell_ending(settings, this.ending, output)


def tell_ending(settings: Settings, ending: Ending, output: Output) -> None:
    """Make the call; what goes wrong with it is said on stderr and changes nothing, a stop that comes too late included."""
    try:
        problem = notify(settings, ending)
    except BaseException as error:
        if not is_stop(error):
            raise
        problem = f"The {ending.job} ({ending.result}) may not have been told: the call was stopped."
    if problem is not None:
        output.say(f"warning: {problem}")
