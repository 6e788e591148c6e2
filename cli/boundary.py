"""The only place where a command is called, its answer printed, and an error made a message and an exit status."""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import typer
from rich.text import Text

from cli.command_lines import one_call, with_command_lines
from cli.options import COMMON_OPTIONS, settings_of
from cli.output import Answer, plain_console, print_answer, stdout_errors, visible, warning, write_json
from cli.stop_signals import StopRequest, stops_delivered
from pipelines.errors import BookferryError, ExitStatus, StorageError
from pipelines.service.redaction import redact
from pipelines.store.durable import is_disk_full, storage_error

STOPPED = "Stopped before the end."


def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Parse and run one command line. Returns its exit status."""

    def body() -> int:
        with stdout_errors():
            status = int(app(list(arguments), prog_name="bookferry", standalone_mode=False) or 0)
            sys.stdout.flush()
        return status

    with one_call(), _warnings_shown():
        status = _status_of(body, as_json="--json" in arguments)
        while _after_answer:
            _after_answer.pop(0)()
    return status


def after_answer(action: Callable[[], None]) -> None:
    """Do something when the command has answered, or reported its error. `action` raises nothing: the exit status stands."""
    _after_answer.append(action)


_after_answer: list[Callable[[], None]] = []


def command(
    target: str,
    opened: Callable[[str | None], Any] | None = settings_of,
    stopped: str = STOPPED,
) -> Callable[[Callable[..., None]], Callable[..., int]]:
    """Returns a decorator for the declaration of a command: its options and its help. Every command has --config and --json besides.

    `target` is the function that answers, as `module:function`. It gets the options by their names and, as the first argument, the
    settings, or what else `opened` makes of --config. Where that is None, the declaration has those of the two that the function wants.
    The module takes up to some seconds to import. It is imported first: a stop signal must not arrive in the middle of that. `stopped`:
    what the command says when a person or a service manager stops it. Errors are reported before Typer handles them.
    """

    def decorate(declaration: Callable[..., None]) -> Callable[..., int]:
        module, _, name = target.partition(":")
        declared = inspect.signature(declaration, eval_str=True)
        common = [] if opened is None else COMMON_OPTIONS

        @functools.wraps(declaration)
        def run_command(**options: Any) -> int:
            as_json = bool(options.get("json") if opened is None else options.pop("json"))

            def body() -> int:
                function = getattr(importlib.import_module(module), name)
                with stops_delivered():
                    first = [] if opened is None else [opened(options.pop("config"))]
                    answer: Answer = function(*first, **options)
                    print_answer(answer, as_json=as_json)
                    return int(answer.status)

            return _status_of(body, as_json=as_json, stopped=stopped)

        parameters = [*declared.parameters.values(), *common]
        run_command.__signature__ = declared.replace(parameters=parameters)  # type: ignore[attr-defined]  # for Typer
        run_command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run_command

    return decorate


class _WarningLines(logging.Handler):
    """Prints each warning once, a line on stderr."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._printed = set[str]()

    def emit(self, record: logging.LogRecord) -> None:
        message = redact(record.getMessage())
        if message not in self._printed:
            self._printed.add(message)
            with suppress(OSError):  # nobody may read stderr any more
                plain_console(sys.stderr).print(warning(message))


@contextmanager
def _warnings_shown() -> Iterator[None]:
    """Show what `pipelines` warns of: what a command goes on without."""
    package_logger, lines = logging.getLogger("pipelines"), _WarningLines()
    package_logger.addHandler(lines)
    try:
        yield
    finally:
        package_logger.removeHandler(lines)


def _status_of(action: Callable[[], int], *, as_json: bool, stopped: str = STOPPED) -> int:
    """Run `action` and return its status. Every error becomes one message.

    A `BookferryError` has a message for the user. Any other error is a mistake in Bookferry and is reported with its traceback.
    """
    try:
        return action()
    except typer.TyperException as error:
        return _report_usage_error(error, as_json=as_json)
    except Exception as error:  # noqa: BLE001  the last place where an error can be reported
        explained = explained_error(error)
        status = ExitStatus.FAILED if explained is None else explained.exit_status
        return fail(message_of(error, explained), status, as_json=as_json)
    except SystemExit as end:
        # the reader of our output, such as `head`, has closed it; Rich lets further output go nowhere
        return ExitStatus.CLOSED_PIPE if isinstance(end.__context__, BrokenPipeError) else int(end.code or 0)
    except StopRequest as interruption:
        # 130 or 143, as a shell reports a process that the signal ended
        status = ExitStatus.TERMINATED if interruption.number == signal.SIGTERM else ExitStatus.INTERRUPTED
        return fail(_noted(interruption.message or stopped, interruption), status, as_json=as_json)


def _report_usage_error(error: typer.TyperException, *, as_json: bool) -> int:
    message = " ".join(error.format_message().split())  # without the lines and tabs of a list
    message = message.replace(": Input should be ", ": it must be ").replace(
        ": Value error, ", ": "
    )  # pydantic's words
    if not message:  # Typer has printed the help instead
        return ExitStatus.USAGE
    context = getattr(error, "ctx", None)
    name = context.command_path if context else "bookferry"
    return fail(f"{message}\n`{name} --help` shows its usage.", ExitStatus.USAGE, as_json=as_json)


def message_of(error: Exception, explained: BookferryError | None) -> str:
    """The message of an error, which is `explained` by another one; of a mistake of ours, that it is one, after its traceback on stderr."""
    if explained is not None:
        return _noted(str(explained), error)
    sys.stderr.write(visible(redact("".join(traceback.format_exception(error)))))
    summary = ": ".join(filter(None, [type(error).__name__, str(error)]))
    return f"{summary}. This is a mistake in Bookferry: please report it with the lines above."


def _noted(message: str, error: BaseException) -> str:
    """A message with what was noted to its error: what failed after it."""
    return " ".join([message, *(note for cause in _with_causes(error) for note in getattr(cause, "__notes__", ()))])


@contextmanager
def stop_message(message: str) -> Iterator[None]:
    """A stop in this block ends the command with `message`."""
    try:
        yield
    except StopRequest as stop:
        stop.message = message
        raise


def explained_error(error: BaseException) -> BookferryError | None:
    """The `BookferryError` behind an error. Each library has its own error for a full disk."""
    for cause in _with_causes(error):
        if isinstance(cause, BookferryError):
            return cause
        if is_disk_full(cause):
            return storage_error(cause, getattr(cause, "filename", None) or "the data folder")
    return None


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """Yields an error and the errors behind it."""
    queue, seen = [error], set[int]()
    while queue:  # causes may form a ring
        current = queue.pop(0)
        yield current
        seen.add(id(current))
        causes = (current.__cause__, current.__context__)
        queue += [cause for cause in causes if cause is not None and id(cause) not in seen]


def fail(message: str, status: ExitStatus, *, as_json: bool) -> ExitStatus:
    """Print an error and return the exit status."""
    message = with_command_lines(redact(message))
    with suppress(OSError):  # nobody may read stderr any more
        plain_console(sys.stderr).print(Text.assemble(("error:", "bold red"), f" {message}"))
    if as_json:
        with suppress(StorageError, OSError):  # stdout itself may have failed
            write_json({"error": message, "exit_status": int(status)})
    return status
