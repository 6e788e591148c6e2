"""`bookferry doctor` as people run it: one document or a readable list, the exit status, the width of a terminal, no secret."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.command import Outcome, run
from tests.doctor.conftest import Patient
from tests.doctor.test_examination import sign_in_of

TWO_TENANTS = """\
data = "library-data"

[tenants.old]
base_url = "{base_url}"
api = "v2"
username_env = "TEST_USER"
password_env = "TEST_PASSWORD"

[tenants.new]
base_url = "{base_url}"
api = "v3"
"""


def doctor(patient: Patient, *arguments: str, **variables: str) -> Outcome:
    """Run it in a process of its own."""
    return run("doctor", *arguments, folder=patient.folder, variables={**sign_in_of(patient), **variables})


def test_a_healthy_library(patient: Patient) -> None:
    """Exit 0; the last line is the truth."""
    outcome = doctor(patient)
    assert (outcome.status, outcome.err) == (0, "")
    assert re.fullmatch(r"Ready: the nightly backup would work for library \(\d+ requests\)\.", outcome.lines[-1])
    for name in ("sign-in", "clock", "rate", "disk", "database", "page links", "end of v2"):
        assert re.search(rf"^  (ok|note|warning) +{name}  ", outcome.out, re.MULTILINE), outcome.out
    assert [line for line in outcome.lines if line != line.rstrip()] == []


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["words", "json"])
def test_a_wrong_password_is_exit_4(patient: Patient, form: list[str]) -> None:
    """And is nowhere to be read."""
    outcome = doctor(patient, *form, TEST_PASSWORD="the-wrong-password-of-this-test")
    assert (outcome.status, outcome.err) == (4, "")
    assert "the-wrong-password-of-this-test" not in outcome.out
    assert "401" in outcome.out


@pytest.mark.long
def test_several_tenants(patient: Patient) -> None:
    """One that works does not hide one that does not; nobody has signed in to v3: exit 4."""
    (patient.folder / "bookferry.toml").write_text(TWO_TENANTS.format(base_url=patient.sandbox.base_url()))
    variables = {"TEST_USER": patient.sandbox.user, "TEST_PASSWORD": patient.sandbox.password}
    outcome = run("doctor", "--json", folder=patient.folder, variables=variables)
    assert (outcome.status, outcome.document["ok"]) == (4, False)
    assert {tenant["tenant"]: tenant["ok"] for tenant in outcome.document["tenants"]} == {"old": True, "new": False}
    words = run("doctor", folder=patient.folder, variables=variables)
    assert words.lines[-1].startswith("PROBLEM: the nightly backup would not work for new")
    assert run("doctor", "old", "--json", folder=patient.folder, variables=variables).status == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such configuration file"),
        ('data = "d"\n', "names no tenant"),
        ("data = [", "not valid TOML"),
    ],
    ids=["none", "empty", "broken"],
)
def test_a_configuration_that_cannot_be_used_is_exit_2(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "bookferry.toml").write_text(content)
    run("doctor", folder=tmp_path).assert_failed(2, said)


LAUNCHER = "run_launcher: {{module: {}, class: {}, config: {{broker: 'memory://'}}}}"
SHARED = 'state = "postgres"'


@pytest.mark.parametrize(
    ("history", "status", "said", "todo"),
    [
        (LAUNCHER.format("dagster_celery.launcher", "CeleryRunLauncher"), 2, "CeleryRunLauncher", SHARED),
        (LAUNCHER.format("not_installed_here", "K8sRunLauncher"), 2, "K8sRunLauncher", SHARED),
        ("[", 0, "cannot be read", ""),
    ],
    ids=["several machines", "their package is elsewhere", "damaged, which is another program's matter"],
)
def test_what_dagster_is_told(patient: Patient, history: str, status: int, said: str, todo: str) -> None:
    """A launcher of several machines needs a shared state and a bucket: each would keep budget and lease of the library for itself."""
    home = patient.folder / "library-data" / "dagster"
    home.mkdir(parents=True)
    (home / "dagster.yaml").write_text(history)
    outcome = doctor(patient, "--json")
    assert (outcome.status, outcome.err) == (status, "")
    [nightly] = [check for check in outcome.document["tenants"][0]["checks"] if check["name"] == "nightly"]
    assert (nightly["status"] == "problem") is (status == 2)
    assert said in nightly["message"]
    assert todo in nightly.get("todo", "")
