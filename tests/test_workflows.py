"""The workflows, the forms and the notices of the repository: they can be read, and what they name exists."""

from __future__ import annotations

import re
from typing import Any

import yaml

from tests.cli.command import ROOT
from tests.test_docs_blocks import TARGETS
from tests.test_docs_migrating import options_of

GITHUB = ROOT / ".github"
WORKFLOWS: dict[str, dict[Any, Any]] = {
    path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in (GITHUB / "workflows").glob("*.yml")
}
JOBS = [(name, job, steps) for name, workflow in WORKFLOWS.items() for job, steps in workflow["jobs"].items()]
STEPS = [(name, step) for name, _job, job in JOBS for step in job.get("steps", [])]


def test_each_command_of_make_and_of_ours_exists() -> None:
    commands = [step["run"] for _, step in STEPS if "run" in step]
    made = {word for line in commands for word in re.findall(r"^make ([\w-]+)", line, re.MULTILINE)}
    assert made <= set(TARGETS)
    assert {"lint", "test", "test-all", "site", "release-check"} <= made
    for line in commands:
        words = line.split()
        if words[0] == "bookferry" and words[1] != "--version":
            assert {word for word in words if word.startswith("--")} <= options_of(words[1:])


def test_actions_are_pinned() -> None:
    """To a commit; a comment names its version. PyPI's own has a branch for each major version, and asks for it."""
    for path in (GITHUB / "workflows").glob("*.yml"):
        for used in re.findall(r"uses: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            pinned = re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+(\.\d+)*", used)
            assert pinned or used == "pypa/gh-action-pypi-publish@release/v1" or used.startswith("./"), used
