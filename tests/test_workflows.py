"""The workflows, the forms and the notices of the repository: they can be read, and what they name exists."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.cli.command import ROOT
from tests.test_docs_blocks import TARGETS
from tests.test_docs_migrating import options_of
from tests.test_project import PYPROJECT

GITHUB = ROOT / ".github"
WORKFLOWS: dict[str, dict[Any, Any]] = {
    path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in (GITHUB / "workflows").glob("*.yml")
}
JOBS = [(name, job, steps) for name, workflow in WORKFLOWS.items() for job, steps in workflow["jobs"].items()]
STEPS = [(name, step) for name, _job, job in JOBS for step in job.get("steps", [])]

every_job = pytest.mark.parametrize(("workflow", "name", "job"), JOBS, ids=[f"{one[0]}:{one[1]}" for one in JOBS])


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


@every_job
def test_a_job_is_bounded_and_needs_what_exists(workflow: str, name: str, job: dict[str, Any]) -> None:
    needed = job.get("needs", [])
    assert {needed} if isinstance(needed, str) else set(needed) <= set(WORKFLOWS[workflow]["jobs"]), name
    if "uses" in job:
        assert (ROOT / job["uses"]).is_file()
    else:
        assert 0 < job["timeout-minutes"] <= 180


def test_only_the_jobs_that_publish_may_write() -> None:
    """Each workflow begins with the right to read; only publishing asks for more, and no password is used anywhere."""
    assert [name for name, workflow in WORKFLOWS.items() if workflow["permissions"] != {"contents": "read"}] == []
    writing = {(name, job) for name, job, steps in JOBS if "write" in steps.get("permissions", {}).values()}
    assert writing == {("release.yml", "publish"), ("release.yml", "announce"), ("release.yml", "site")}
    texts = [path.read_text(encoding="utf-8") for path in (GITHUB / "workflows").glob("*.yml")]
    assert not any("secrets." in text for text in texts)


def test_each_supported_python_is_tested_on_each_system() -> None:
    matrix = WORKFLOWS["ci.yml"]["jobs"]["quick"]["strategy"]["matrix"]
    supported = re.findall(r"Python :: (3\.\d+)", "\n".join(PYPROJECT["project"]["classifiers"]))
    assert matrix["python"] == supported
    assert matrix["os"] == ["ubuntu-latest", "macos-latest"]


def test_artifacts_that_are_taken_were_given() -> None:
    given = {step["with"]["name"] for _, step in STEPS if "upload-artifact" in step.get("uses", "")}
    taken = {step["with"]["name"] for _, step in STEPS if "download-artifact" in step.get("uses", "")}
    assert given == taken == {"dist"}


FORMS: dict[str, dict[str, Any]] = {
    path.name: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml")
    if path.name != "config.yml"
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_has_what_the_service_of_issues_wants(name: str) -> None:
    """Types and keys that exist, ids that differ, at least one question; options that differ."""
    form = FORMS[name]
    assert (
        {"name", "description", "body"} <= set(form) <= {"name", "description", "body", "labels", "title", "assignees"}
    )
    questions = [one for one in form["body"] if one["type"] != "markdown"]
    assert questions
    assert len({one["id"] for one in questions}) == len(questions)
    for one in form["body"]:
        assert one["type"] in {"markdown", "input", "textarea", "dropdown", "checkboxes"}
        assert set(one) <= {"type", "id", "attributes", "validations"}
        assert ("value" if one["type"] == "markdown" else "label") in one["attributes"]
        if one["type"] == "dropdown":
            options = one["attributes"]["options"]
            assert all(isinstance(option, str) for option in options)
            assert len(set(options)) == len(options)


def test_forms_ask_with_commands_that_exist() -> None:
    for form in FORMS.values():
        for line in re.findall(r"`bookferry ([^`]+)`", str(form)):
            if line != "--version":
                words = line.split()
                assert {word for word in words if word.startswith("--")} <= options_of(words)
    for name in ("bug.yml", "service.yml"):
        assert "bookferry describe TENANT --report FILE" in str(FORMS[name])


def test_the_citation_has_what_its_format_wants() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    project = PYPROJECT["project"]
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])
    assert citation["repository-code"] == project["urls"]["Source"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in project["authors"]]
