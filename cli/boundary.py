"""The one place where an error becomes a message and an exit status (the contract's exit table)."""

from __future__ import annotations

import functools
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer
from rich.text import Text

from cli.output import Output, plain_console
from cli.stop_signals import STOP_SIGNALS
from pipelines.errors import BookferryError, ExitStatus, StorageError
from pipelines.service.redaction import redact
from pipelines.store.durable import is_disk_full, storage_error

ConfigOption = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="bookferry.toml; else $BOOKFERRY_CONFIG, else the working folder's."),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Exactly one JSON document on stdout, everything else on stderr.")
]

STOPPED = (
    "Stopped before the end. Nothing was published and the last good snapshot is untouched. What was read is kept: the same command goes "
    "on from there, if it is run soon enough (resume_hours)."
)


def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Parse and run one command line; its exit status."""
    return _told(
        lambda: int(app(list(arguments), prog_name="bookferry", standalone_mode=False) or 0),
        as_json="--json" in arguments,
    )


def command(function: Callable[..., ExitStatus]) -> Callable[..., int]:
    """A command's body: it returns its status; whatever it raises is told here, before Typer has a notion of its own what it means."""

    @functools.wraps(function)
    def run_command(*args: Any, **kwargs: Any) -> int:
        def body() -> int:
            with _stops_let_in():
                return int(function(*args, **kwargs))

        return _told(body, as_json=bool(kwargs.get("json")))

    return run_command


@contextmanager
def _stops_let_in() -> Iterator[None]:
    """SIGINT and SIGTERM, which `main` holds back, end what is in this block, and nothing after it: what is done is done.

    One that was ignored when we began, as a terminal's Ctrl-C is for a script's jobs in the background, stays out: Dagster would hear it.
    """
    meant = [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, meant)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)


def _told(action: Callable[[], int], *, as_json: bool) -> int:
    """The status of `action`. What it raises becomes one message.

    A `BookferryError` explains itself. What nobody foresaw is a mistake of ours: it is told with its place in the code, never as a success.
    """
    try:
        return action()
    except typer.TyperException as error:
        return _tell_usage(error, as_json=as_json)
    except BrokenPipeError:  # whoever reads our stdout, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.FAILED
    except Exception as error:  # noqa: BLE001  the last place where anything can be told
        return _tell(error, as_json=as_json)
    except BaseException as interruption:
        if not is_stop(interruption):
            raise
        return fail(getattr(interruption, "told", STOPPED), ExitStatus.FAILED, as_json=as_json)


def _tell_usage(error: typer.TyperException, *, as_json: bool) -> int:
    message = error.format_message()
    if not message:  # the help has been shown instead
        return ExitStatus.USAGE
    context = getattr(error, "ctx", None)
    name = context.command_path if context else "bookferry"
    return fail(f"{message}\n`{name} --help` shows how it is used.", ExitStatus.USAGE, as_json=as_json)


def _tell(error: Exception, *, as_json: bool) -> int:
    explained = known(error)
    if explained is not None:
        return fail(str(explained), explained.exit_status, as_json=as_json)
    sys.stderr.write(redact("".join(traceback.format_exception(error))))
    message = f"{type(error).__name__}: {error}. This is a mistake in Bookferry: please report it with the lines above."
    return fail(message, ExitStatus.FAILED, as_json=as_json)


def is_stop(error: BaseException) -> bool:
    """Whether somebody asked us to end: Python's interrupt or Dagster's."""
    return "Interrupt" in "".join(kind.__name__ for kind in type(error).__mro__)


def known(error: BaseException) -> BookferryError | None:
    """The error that explains it: Dagster wraps what a job raises, and a full disk speaks through many libraries."""
    waiting, seen = [error], set[int]()
    while waiting:  # causes may form a ring
        one = waiting.pop(0)
        if isinstance(one, BookferryError):
            return one
        if is_disk_full(one):
            return storage_error(one, getattr(one, "filename", None) or "the data folder")
        seen.add(id(one))
        waiting += [cause for cause in (one.__cause__, one.__context__) if cause is not None and id(cause) not in seen]
    return None


def fail(message: str, status: ExitStatus, *, as_json: bool) -> ExitStatus:
    """Tell an error, and give back the status that it ends with."""
    message = redact(message)
    plain_console(sys.stderr).print(Text.assemble(("error:", "bold red"), f" {message}"))
    if as_json:
        with suppress(StorageError, OSError):  # stdout itself may be what failed
            Output(as_json=True).write_json({"error": message, "exit_status": int(status)})
    return status
