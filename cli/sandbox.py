"""`bookferry sandbox`: a server that replaces this process, so that signals reach it directly."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import typer

from cli.options import settings_of
from cli.process import replace_process
from cli.stop_signals import STOP_SIGNALS
from pipelines.python_process import python_command

if TYPE_CHECKING:
    from pipelines.settings.settings import Settings


HELP = frozenset({"-h", "--help"})
LIKE_HELP = """Options of Bookferry's command line, besides those of the sandbox:
  --like SNAPSHOT       give its library the fields that the records of this snapshot have (--config names the configuration file)
  --json                print the addresses as one JSON document

"""


OUTPUT_VARIABLE = "BOOKFERRY_SANDBOX_OUTPUT"
"""Tells `python -m sandbox` in which form it prints addresses and errors."""


def run_sandbox(*, context: typer.Context, like: str | None, config: str | None, json: bool) -> NoReturn:
    """Run `python -m sandbox` with the same arguments. A stop signal waits until the sandbox can receive it."""
    arguments = list(context.args)
    if like is not None:
        arguments = [*_like_snapshot(settings_of(config), like, arguments), *arguments]
    os.environ[OUTPUT_VARIABLE] = "json" if json else "words"
    if not HELP.isdisjoint(arguments):
        sys.stdout.write(LIKE_HELP)
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    replace_process(python_command("-m", "sandbox", *arguments))


def _like_snapshot(settings: Settings, name: str, arguments: Sequence[str]) -> list[str]:
    """The options for a sandbox with the shapes of a snapshot: an empty library, unless `arguments` name one, to restore into."""
    # A sandbox without a snapshot starts without these
    from pipelines.drill import shapes_option  # noqa: PLC0415
    from pipelines.store.stores import open_data  # noqa: PLC0415

    data = open_data(settings)
    data.prepare()
    snapshot = data.find_snapshot(name)
    named = any(word == "--tenant" or word.startswith("--tenant=") for word in arguments)
    shapes = shapes_option(data, snapshot, data.path / "rehearsal-shapes.json")
    return [*shapes, *([] if named else ["--tenant", f"{snapshot.manifest.tenant}=empty"])]
