from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from tests.assets_defs.installation import INSTANCE, PASSWORD, DagsterInstallation, configure
from tests.sandbox.process import SandboxProcess


@pytest.fixture(autouse=True)
def no_home_of_a_person(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test touches a DAGSTER_HOME or a configuration that somebody has."""
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "nobodys-dagster-home"))
    monkeypatch.delenv("BOOKFERRY_CONFIG", raising=False)


@pytest.fixture(scope="session")
def shared_sandbox() -> Iterator[SandboxProcess]:
    """One sandbox with two libraries of real records, and a password that occurs nowhere else."""
    tenants = ("--tenant=library=real:120", "--tenant=second=real:60")
    with SandboxProcess(*tenants, "--requests-per-minute", "0", "--password", PASSWORD) as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(shared_sandbox: SandboxProcess) -> SandboxProcess:
    """The sandbox without liberties, faults and counts."""
    shared_sandbox.reset()
    return shared_sandbox


@pytest.fixture(scope="session")
def dagster_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of Dagster with its databases, which it takes a quarter of a second to make. Each test has a copy."""
    home = tmp_path_factory.mktemp("dagster-home")
    (home / "dagster.yaml").write_text(INSTANCE)
    with dg.DagsterInstance.from_config(str(home)):
        return home


@pytest.fixture
def installation(
    sandbox: SandboxProcess, dagster_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DagsterInstallation]:
    """A configuration of both libraries, its data folder and a Dagster instance of its own."""
    for variable, value in configure(tmp_path, sandbox, dagster_home).items():
        monkeypatch.setenv(variable, value)
    with DagsterInstallation(tmp_path) as installation:
        yield installation
