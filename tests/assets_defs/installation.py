"""A configuration with a Dagster instance, and the ways to run a backup on it."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import dagster as dg

from assets_defs.backup import SNAPSHOT
from assets_defs.definitions import build_definitions
from pipelines.settings.config_file import load_settings
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from tests.kept_texts import texts_below
from tests.sandbox.process import SandboxProcess

ROOT = Path(__file__).parents[2]
PASSWORD = "pässword-that-occurs-nowhere-else"

INSTANCE = """\
telemetry: {enabled: false}
compute_logs: {module: dagster._core.storage.noop_compute_log_manager, class: NoOpComputeLogManager}
"""
"""No capture of output: Dagster captures it with `tail` processes that outlive the run, and Python warns of each in a later test."""

CONFIG = """
data = "library-data"

[tenants.old]
base_url = "{library}"
api = "v2"
username_env = "TEST_USER"
password_env = "TEST_PASSWORD"
requests_per_minute = 100000

[tenants.second]
base_url = "{second}"
api = "v2"
session_cookie_env = "TEST_COOKIE"
requests_per_minute = 100000
"""


def configure(folder: Path, sandbox: SandboxProcess, dagster_home: Path) -> dict[str, str]:
    """Write bookferry.toml and a copy of Dagster's home into `folder`; the variables that are to be set."""
    config, home = folder / "bookferry.toml", folder / "dagster-home"
    config.write_text(CONFIG.format(library=sandbox.base_url("library"), second=sandbox.base_url("second")))
    shutil.copytree(dagster_home, home)
    return {
        "BOOKFERRY_CONFIG": str(config),
        "DAGSTER_HOME": str(home),
        "TEST_USER": sandbox.user,
        "TEST_PASSWORD": sandbox.password,
        "TEST_COOKIE": sandbox.session_cookie("second"),
    }


class DagsterInstallation:
    """A configuration, its data folder and a Dagster instance. The variables of `configure` are in the environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = load_settings(folder / "bookferry.toml")
        self.data = DataFolder(self.settings.data)
        self.instance = dg.DagsterInstance.from_config(str(folder / "dagster-home"))

    def __enter__(self) -> Self:
        self.instance.__enter__()
        return self

    def __exit__(self, *caught: object) -> None:
        self.instance.__exit__(*caught)

    def run(
        self,
        *tenants: str,
        **tags: str,
    ) -> dg.ExecuteInProcessResult:
        """The job `nightly_backup` in this process, as Dagster runs it: with a backup resource of its own."""
        job = build_definitions(self.settings).resolve_job_def("nightly_backup")
        keys = [dg.AssetKey([tenant, SNAPSHOT]) for tenant in tenants or ("old",)]
        return job.execute_in_process(instance=self.instance, asset_selection=keys, raise_on_error=False, tags=tags)

    def process(self, *command: str, variables: Mapping[str, str | None] | None = None) -> subprocess.Popen[str]:
        """A command in a process of its own. A variable that is `None` is not set."""
        changed = {"PYTHONPATH": str(ROOT), **(variables or {})}
        environment = {**os.environ, **{name: value for name, value in changed.items() if value is not None}}
        for name, value in changed.items():
            if value is None:
                environment.pop(name, None)
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def dagster(self, *arguments: str, variables: Mapping[str, str | None] | None = None) -> subprocess.Popen[str]:
        """`dagster ARGUMENTS`."""
        return self.process(sys.executable, "-m", "dagster", *arguments, variables=variables)

    def bookferry(self, *arguments: str) -> subprocess.Popen[str]:
        """`bookferry ARGUMENTS`."""
        return self.process(sys.executable, "-c", "from cli.main import main; main()", *arguments)

    @property
    def snapshots(self) -> list[Snapshot]:
        """All published snapshots."""
        return self.data.snapshots()

    def kept_texts(self) -> dict[str, str]:
        """Path → content of every file of the data folder and of Dagster, as text."""
        return {path: text for path, text in texts_below(self.folder) if not path.endswith("bookferry.toml")}


def secrets_of(sandbox: SandboxProcess) -> list[str]:
    """Secrets that must not occur: the password, its header, session cookies, and the mark of a signed address."""
    pair = f"{sandbox.user}:{sandbox.password}".encode()
    cookies = [sandbox.session_cookie("library"), sandbox.session_cookie("second")]
    return [
        PASSWORD,
        PASSWORD.encode("unicode_escape").decode(),
        base64.b64encode(pair).decode(),
        *cookies,
        "ignature=",
    ]


def red(result: dg.ExecuteInProcessResult) -> set[tuple[str, str]]:
    """Asset and check of what a run turned red."""
    return {
        (check.asset_key.path[-1], check.check_name)
        for check in result.get_asset_check_evaluations()
        if not check.passed and check.severity is dg.AssetCheckSeverity.ERROR
    }


def plain(metadata: Mapping[str, dg.MetadataValue]) -> dict[str, Any]:
    """Metadata as plain values; a table as its rows."""
    return {
        name: [record.data for record in value.records] if isinstance(value, dg.TableMetadataValue) else value.value
        for name, value in metadata.items()
    }
