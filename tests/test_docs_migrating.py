"""docs/migrating.md is true: its commands and options exist, and its tables and times agree with the code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import typer
import yaml

from assets_defs.definitions import build_definitions
from cli.app import app
from pipelines.errors import ExitStatus
from pipelines.humanize import duration
from pipelines.inventory import LAST_DAY_OF_V2
from pipelines.migration.limits import Limits
from pipelines.migration.model.actions import Action, Decision, FileAction
from pipelines.migration.model.plan import PlannedFile
from pipelines.migration.model.reasons import REASONS, Kind
from pipelines.migration.model.wording import ACTIONS
from pipelines.migration.plan.files import requests_of
from pipelines.migration.plan.rows import requests_to_read
from pipelines.settings.loading import load_settings
from tests.cli.command import ROOT

TEXT = (ROOT / "docs" / "migrating.md").read_text(encoding="utf-8")
COMMANDS = [
    line.partition("  #")[0]
    for block in re.findall(r"^```(?:sh|console)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
] + re.findall(r"`(bookferry [^`]+)`", TEXT)
CONFIG = "\n".join(re.findall(r"^```toml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))
RUNS = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def table(heading: str) -> list[list[str]]:
    """Rows of the table whose first column has this heading."""
    lines = iter(TEXT.splitlines())
    for line in lines:
        if line.startswith(f"| {heading} |"):
            break
    rows = []
    for line in lines:
        if not line.startswith("|"):
            return rows
        if not set(line) <= set("|-:"):
            rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def quoted(cells: list[str]) -> set[str]:
    """The words between backticks."""
    return {word for cell in cells for word in re.findall(r"`([^`]+)`", cell)}


def options_of(words: list[str]) -> set[str]:
    """The options of a command; fails where there is no such command."""
    command: Any = typer.main.get_command(app)
    names = iter(words)
    while subcommands := getattr(command, "commands", None):
        command = subcommands[next(names)]
    return {option for parameter in command.params for option in [*parameter.opts, *parameter.secondary_opts]}


@pytest.mark.parametrize("line", sorted(set(COMMANDS)))
def test_every_command_that_the_page_names_exists(line: str) -> None:
    """With its options, except those of `sandbox`, which passes them on."""
    words = shlex.split(line.removeprefix("$ "))
    assert Path(words[0]).name == "bookferry"
    options = options_of(words[1:])
    if "sandbox" not in words:
        assert {word for word in words if word.startswith("--")} <= options


def test_every_option_that_the_page_names_is_one_of_its_commands() -> None:
    named = set(re.findall(r"`(--[a-z-]+)", TEXT))
    commands = (
        ["migrate", "plan"],
        ["migrate", "apply"],
        ["migrate", "verify"],
        ["migrate", "status"],
        ["migrate", "undo"],
        ["restore"],
    )
    options = set().union(*(options_of(list(words)) for words in commands))
    assert named <= options
    assert {"--limit", "--only", "--contents", "--really", "--newest", "--overwrite", "--json"} <= named


def test_the_times_agree_with_the_code() -> None:
    """Creates + 2 per file + 1 per cover + one reading of an empty target, at 60 a minute."""
    files = [PlannedFile(kind=kind, position=0, action=FileAction.UPLOAD) for kind in ("asset", "cover")]
    rows = table("publications")
    assert [row[0] for row in rows] == ["1,000", "10,000", "100,000"]
    for row in rows:
        count = int(row[0].replace(",", ""))
        writes = [
            count * requests_of(Action.CREATE, {"title": "A"}, files[:some]) + requests_to_read(0) for some in range(3)
        ]
        assert row[1:] == [duration(requests) for requests in (requests_to_read(count), *writes)]
    assert f"{LAST_DAY_OF_V2:%-d %B %Y}" in TEXT


def test_the_tables_have_every_action_decision_and_reason() -> None:
    assert quoted([row[0] for row in table("action")]) == set(ACTIONS)
    decisions = quoted([row[0] for row in table("you write")])
    assert {word.split()[0] for word in decisions} == {
        Decision.CREATE,
        Decision.SKIP,
        Decision.MATCH,
        Decision.SOURCE,
        Decision.TARGET,
        Decision.MERGE,
    }
    reasons = {reason.problem for reason in REASONS.values() if reason.kind == Kind.UNDECIDED}
    assert {row[0] for row in table("problem")} == reasons


def test_the_tables_have_every_limit_and_every_exit_status() -> None:
    limits = [float(row[1]) for row in table("limit")]
    assert limits == [Limits.touched_percent, Limits.failures, Limits.failures_percent]
    statuses = [int(status) for row in table("exit status") for status in row[0].split(",")]
    assert statuses == [status.value for status in ExitStatus if status.value in statuses]
    assert {status.value for status in ExitStatus} - {*statuses} <= {141}, "nobody reads the output any more"


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


def test_the_readme_leads_here() -> None:
    assert "(docs/migrating.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
