"""Tells Dagster's instance what a command made, so that the web interface shows the same of it as of its own runs.

The command answers first: Dagster takes longer to import than a small backup. What was made stays good if Dagster cannot be told.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

from cli.boundary import after_answer
from cli.dagster_instance import dagster_folder, dagster_home, one_at_a_time
from cli.output import plain_console, warning
from cli.stop_signals import stops_delivered
from pipelines.file_access import share_databases
from pipelines.service.redaction import redact
from pipelines.settings.settings import Settings
from pipelines.store.durable import is_disk_full


def tell_dagster(settings: Settings, results: str, *arguments: Any, subject: str = "") -> None:
    """Tell Dagster of what the function `module:results` of `assets_defs` makes of the arguments. It is called after the answer, too.

    `subject`: their name, for the line that says why Dagster cannot be told; without it there is none, as after a backup that failed: its
    error is the last line, and often has the same reason.
    """
    after_answer(partial(_tell, settings, results, arguments, subject))


def _tell(settings: Settings, results: str, arguments: Sequence[Any], subject: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _record(settings, results, arguments)
    except KeyboardInterrupt:
        problem = "it was stopped"
    except Exception as error:  # noqa: BLE001  Dagster's instance may be of any version, damaged, or on a full disk
        problem = "the disk is full" if is_disk_full(error) else f"{type(error).__name__}: {error}".partition("\n")[0]
    else:
        return
    if subject:
        text = (
            f"Dagster could not be told of {subject}, and its pages do not show it: {redact(problem)}. Its instance is in "
            f"{dagster_folder(settings)}. Nothing else is affected, and nothing has to be repeated: once that is mended, the pages show "
            "the next one."
        )
        plain_console(sys.stderr).print(warning(text))


def _record(settings: Settings, results: str, arguments: Sequence[Any]) -> None:
    import dagster as dg  # noqa: PLC0415  see the module's docstring

    from assets_defs.events import events_of  # noqa: PLC0415

    module, _, function = results.partition(":")
    made = getattr(importlib.import_module(f"assets_defs.{module}"), function)(*arguments)
    home = dagster_home(settings)
    with stops_delivered():
        with one_at_a_time(home):  # Dagster creates its tables without a lock
            instance = dg.DagsterInstance.from_config(str(home))
        with instance:
            for event in events_of(made):
                instance.report_runless_asset_event(event)
    history = home / "history"
    share_databases(history / "runs.db", history / "runs" / "index.db", home / "schedules" / "schedules.db")
