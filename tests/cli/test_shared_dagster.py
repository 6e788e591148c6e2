"""Dagster's web interface as people share it: assets that a person selects, and a history in Postgres."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipelines.service.sandbox_process import CLIENT_ID, store_sign_in
from pipelines.settings.loading import load_settings
from tests.cli.command import ROOT, Installation
from tests.cli.web_interface import ALL_ASSETS, WebInterface
from tests.postgres import database, postgres_server
from tests.sandbox.process import SandboxProcess

CONFIG = """\
data = "library-data"

[tenants.small]
base_url = "{base_url}"
api = "v3"
client_id = "{client}"
client_auth = "none"
requests_per_minute = 100000
"""

STEPS = "query Steps($run: ID!) {runOrError(runId: $run) {... on Run {stepStats {stepKey status}}}}"
EVENTS = """
query Events($run: ID!) {
  logsForRun(runId: $run) {... on EventConnection {events {__typename ... on MessageEvent {message}}}}
}
"""
(DAGSTER_YAML,) = re.findall(
    r"^```yaml\n(storage:.*?)^```",
    (ROOT / "docs" / "several-machines.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)
"""The storage as the manual says."""


@pytest.fixture
def v3(tmp_path: Path, sandbox: SandboxProcess, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """A library of version 3, signed in to."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "bookferry.toml").write_text(CONFIG.format(base_url=sandbox.base_url("small"), client=CLIENT_ID))
    store_sign_in(load_settings(tmp_path / "bookferry.toml"), "small", sandbox.ready, "small")
    return Installation(tmp_path, sandbox, "small")


@pytest.mark.long
@pytest.mark.timeout(900)
def test_selected_assets_run_in_one_process(v3: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several steps at once: in processes of their own, one would find the library busy with the other."""
    with postgres_server() as server, database(server) as address:
        home = v3.folder / "library-data" / "dagster"
        home.mkdir(parents=True)
        (home / "dagster.yaml").write_text(DAGSTER_YAML)
        monkeypatch.setenv("HISTORY_POSTGRES", address)
        with WebInterface(v3) as interface:
            run = interface.launch(ALL_ASSETS, [("small", "snapshot"), ("small", "raw_users"), ("small", "report")])
            ended = interface.wait_for(run)
            found = interface.ask(EVENTS, {"run": run})["logsForRun"]["events"]
            assert ended == "SUCCESS", [event["message"] for event in found if "Failure" in event["__typename"]]
            steps = interface.ask(STEPS, {"run": run})["runOrError"]["stepStats"]
            assert {step["stepKey"]: step["status"] for step in steps} == {
                f"small__{name}": "SUCCESS" for name in ("snapshot", "report")
            }
            assert not [event for event in found if event["__typename"] == "StepProcessStartingEvent"]
            interface.stop()
        assert not (home / "history").exists()
        assert v3.backup().status == 0, "the command line uses the same history"
