"""Options that several commands have, and what they mean."""

from __future__ import annotations

import os
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli import completion
from cli.command_lines import remember_config

if TYPE_CHECKING:
    from pipelines.settings.settings import Settings

CONFIG_HELP = "The configuration file. Default: $BOOKFERRY_CONFIG, else bookferry.toml in the working folder."
JSON_HELP = "Print exactly one JSON document on stdout, and everything else on stderr."


def _or_before_the_command(context: typer.Context, parameter: typer.CallbackParam, value: Any) -> Any:
    """The value of an option, or what the same option has before the command: `bookferry --json backup TENANT`."""
    return value or context.find_root().params.get(parameter.name or "")


def _config(context: typer.Context, parameter: typer.CallbackParam, value: str | None) -> Any:
    file = _or_before_the_command(context, parameter, value)
    remember_config(file)
    return file


ConfigOption = Annotated[str | None, typer.Option("--config", metavar="FILE", help=CONFIG_HELP, callback=_config)]
JsonOption = Annotated[bool, typer.Option("--json", help=JSON_HELP, callback=_or_before_the_command)]
COMMON_OPTIONS = [
    Parameter("config", Parameter.KEYWORD_ONLY, default=None, annotation=ConfigOption),
    Parameter("json", Parameter.KEYWORD_ONLY, default=False, annotation=JsonOption),
]
"""The parameters of nearly every command."""

Tenant = Annotated[str, typer.Argument(autocompletion=completion.tenants, help="A tenant of bookferry.toml.")]
BackedUpTenant = Annotated[str, typer.Argument(autocompletion=completion.tenants, help="A tenant that has snapshots.")]
SnapshotOption = Annotated[
    str | None,
    typer.Option(
        autocompletion=completion.snapshot_names,
        help="A snapshot: TENANT/SNAPSHOT, or its id. Default: the newest complete one.",
    ),
]


def settings_of(config: str | None) -> Settings:
    """The settings of the file that --config names, or of the default one. New files are only for whom it names from now on."""
    from pipelines.file_access import restrict_new_files
    from pipelines.settings.config_file import find_config, load_settings

    settings = load_settings(find_config(Path(config) if config else None))
    restrict_new_files(settings.group)
    return settings


def settings_if_any(config: str | None) -> Settings | None:
    """The same for commands that work without a configuration. A file that somebody names must exist and be valid."""
    from pipelines.settings.config_file import CONFIG_FILE, CONFIG_VARIABLE

    named = config or os.environ.get(CONFIG_VARIABLE)
    return settings_of(config) if named or Path(CONFIG_FILE).is_file() else None


def names_in(text: str) -> list[str]:
    """The names in a list separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
