"""docs/migrating.md is true: its configuration and its runs are valid; tests/test_docs_blocks.py has its commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import typer
import yaml

from assets_defs.definitions import build_definitions
from cli.app import app
from pipelines.settings.config_file import load_settings
from tests.cli.command import ROOT

TEXT = (ROOT / "docs" / "migrating.md").read_text(encoding="utf-8")
CONFIG = "\n".join(re.findall(r"^```toml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))
RUNS = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def options_of(words: list[str]) -> set[str]:
    """The options of a command; fails where there is no such command."""
    command: Any = typer.main.get_command(app)
    names = iter(words)
    while subcommands := getattr(command, "commands", None):
        command = subcommands[next(names)]
    return {option for parameter in command.params for option in [*parameter.opts, *parameter.secondary_opts]}


@pytest.mark.long
def test_the_configuration_and_the_dagster_runs_are_valid(tmp_path: Path) -> None:
    """The settings can be loaded, and Dagster accepts each run configuration."""
    (tmp_path / "bookferry.toml").write_text(CONFIG)
    definitions = build_definitions(load_settings(tmp_path / "bookferry.toml"))
    jobs = ["plan_migration", "apply_migration", "verify_migration"]
    assert len(RUNS) == len(jobs)
    for name, text in zip(jobs, RUNS, strict=True):
        (step,) = yaml.safe_load(text)["ops"]
        job = definitions.resolve_job_def(name).get_subset(asset_selection={dg.AssetKey(step.split("__"))})
        assert dg.validate_run_config(job, yaml.safe_load(text))
