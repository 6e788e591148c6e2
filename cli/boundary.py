"""The only place where an error becomes a message and an exit status."""

from __future__ import annotations

import functools
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import typer
from rich.text import Text

from cli.output import Output, plain_console
from cli.stop_signals import STOP_SIGNALS
from pipelines.errors import BookferryError, ExitStatus, StorageError
from pipelines.service.redaction import redact
from pipelines.store.durable import is_disk_full, storage_error

STOPPED = (
    "Stopped before the end. Nothing was published and the last good snapshot is untouched. What was read is stored: the same command "
    "resumes there, if it runs soon enough (resume_hours)."
)


def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Parse and run one command line. Returns its exit status."""
    return _status_of(
        lambda: int(app(list(arguments), prog_name="bookferry", standalone_mode=False) or 0),
        as_json="--json" in arguments,
    )


def command(function: Callable[..., ExitStatus]) -> Callable[..., int]:
    """Decorates the function of a command, which returns its status. Reports its errors before Typer handles them."""

    @functools.wraps(function)
    def run_command(*args: Any, **kwargs: Any) -> int:
        def body() -> int:
            with _stops_delivered():
                return int(function(*args, **kwargs))

        return _status_of(body, as_json=bool(kwargs.get("json")))

    return run_command


@contextmanager
def _stops_delivered() -> Iterator[None]:
    """SIGINT and SIGTERM, which `main` blocks, arrive in this block only: the work is finished after it.

    A signal that was ignored at the start stays blocked, such as the terminal's Ctrl-C for background jobs of a script: Dagster would
    install a handler for it.
    """
    numbers = [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)


def _status_of(action: Callable[[], int], *, as_json: bool) -> int:
    """Run `action` and return its status. Every error becomes one message.

    A `BookferryError` has a message for the user. Any other error is a mistake in Bookferry and is reported with its traceback.
    """
    try:
        return action()
    except typer.TyperException as error:
        return _report_usage_error(error, as_json=as_json)
    except BrokenPipeError:  # the reader of stdout, such as `head`, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.FAILED
    except Exception as error:  # noqa: BLE001  the last place where an error can be reported
        return _report_error(error, as_json=as_json)
    except BaseException as interruption:
        if not is_stop(interruption):
            raise
        return fail(getattr(interruption, "message", STOPPED), ExitStatus.FAILED, as_json=as_json)


def _report_usage_error(error: typer.TyperException, *, as_json: bool) -> int:
    message = error.format_message()
    if not message:  # Typer has printed the help instead
        return ExitStatus.USAGE
    context = getattr(error, "ctx", None)
    name = context.command_path if context else "bookferry"
    return fail(f"{message}\n`{name} --help` shows its usage.", ExitStatus.USAGE, as_json=as_json)


def _report_error(error: Exception, *, as_json: bool) -> int:
    explained = explained_error(error)
    if explained is not None:
        return fail(str(explained), explained.exit_status, as_json=as_json)
    sys.stderr.write(redact("".join(traceback.format_exception(error))))
    message = f"{type(error).__name__}: {error}. This is a mistake in Bookferry: please report it with the lines above."
    return fail(message, ExitStatus.FAILED, as_json=as_json)


def is_stop(error: BaseException) -> bool:
    """Whether this is a stop: the interrupt of Python or of Dagster."""
    return "Interrupt" in "".join(kind.__name__ for kind in type(error).__mro__)


def explained_error(error: BaseException) -> BookferryError | None:
    """The `BookferryError` behind an error. Dagster wraps the errors of a job, and each library has its own error for a full disk."""
    queue, seen = [error], set[int]()
    while queue:  # causes may form a ring
        current = queue.pop(0)
        if isinstance(current, BookferryError):
            return current
        if is_disk_full(current):
            return storage_error(current, getattr(current, "filename", None) or "the data folder")
        seen.add(id(current))
        causes = (current.__cause__, current.__context__)
        queue += [cause for cause in causes if cause is not None and id(cause) not in seen]
    return None


def fail(message: str, status: ExitStatus, *, as_json: bool) -> ExitStatus:
    """Print an error and return the exit status."""
    message = redact(message)
    plain_console(sys.stderr).print(Text.assemble(("error:", "bold red"), f" {message}"))
    if as_json:
        with suppress(StorageError, OSError):  # stdout itself may have failed
            Output(as_json=True).write_json({"error": message, "exit_status": int(status)})
    return status
