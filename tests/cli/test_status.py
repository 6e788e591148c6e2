"""`bookferry status`: the state of all libraries on one screen, and its exit status."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import DagsterEvent, DagsterEventType
from dagster._daemon.types import DaemonHeartbeat
from psycopg.conninfo import conninfo_to_dict

from cli.dagster_runs import ALIVE_SECONDS, SELECTED_ASSETS, failed_runs, scheduler_runs
from pipelines.migration.apply.run import Selection
from pipelines.overview.libraries import ProblemCode, overview
from pipelines.settings.config_file import load_settings
from pipelines.store.stores import open_data
from tests.cli.command import Installation, run
from tests.cli.conftest import SMALL
from tests.migration.library_pair import LibraryPair
from tests.postgres import database, postgres_server
from tests.sandbox.process import SandboxProcess


@pytest.fixture
def installation(sandbox: SandboxProcess, tmp_path: Path) -> Installation:
    """A library of three pages, not backed up yet."""
    return Installation.make(tmp_path, sandbox, "small")


def codes(library: dict[str, Any]) -> list[str]:
    return [problem["code"] for problem in library["problems"]]


@pytest.mark.long
def test_before_and_after_the_first_backup(installation: Installation) -> None:
    """Nothing is written and no library is asked: before the first backup there is no data folder, and no sign-in either.

    After a day and two hours without another one, it is too old.
    """
    before = installation.answer("status", status=3, variables={})
    [library] = before["libraries"]
    assert (before["ok"], before["scheduler"], library["backup"], codes(library)) == (False, False, None, ["backup"])
    assert not (installation.folder / "library-data").exists()
    document = installation.backup("--json").document
    after = installation.answer("status", variables={})
    [library] = after["libraries"]
    expected = {"snapshot": document["snapshot"], "records": SMALL, "files": document["files"]["kept"]}
    assert library["backup"].items() >= expected.items()
    days_left = (datetime(2026, 12, 31, tzinfo=UTC).date() - datetime.now(UTC).date()).days
    assert (after["ok"], library["days_left"], library["last_verified"], codes(library)) == (True, days_left, None, [])
    settings = load_settings(installation.folder / "bookferry.toml")
    for hours, status, problems in ((25, 0, []), (27, 3, [ProblemCode.BACKUP])):
        later = overview(settings, open_data(settings), datetime.now(UTC) + timedelta(hours=hours))
        assert (later.exit_status, [problem.code for problem in later.libraries[0].problems]) == (status, problems)


def test_a_migration_that_was_begun(sandbox: SandboxProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan waits; one that was begun needs attention until its verification found the target equal, or a later one was begun."""
    monkeypatch.setenv("TEST_USER", sandbox.user)
    monkeypatch.setenv("TEST_PASSWORD", sandbox.password)
    pair = LibraryPair.at(tmp_path, sandbox, "few", "bare")
    settings, snapshot = load_settings(pair.config), pair.back_up()

    def state() -> tuple[list[tuple[str, bool, str]], bool]:
        summary = overview(settings, open_data(settings), datetime.now(UTC))
        plans = [(plan.plan, plan.begun, plan.waits_for) for plan in summary.plans]
        [codes] = [
            [problem.code for problem in library.problems] for library in summary.libraries if library.tenant == "new"
        ]
        return plans, ProblemCode.MIGRATION in codes

    first = pair.plan(snapshot)
    assert state() == ([(first.name, False, "its application")], False)
    pair.apply(first, selection=Selection(limit=4))
    second = pair.plan(snapshot)
    assert [name for name, _begun, _waits_for in state()[0]] == [first.name, second.name]
    pair.apply(second, selection=Selection(limit=4))
    [(name, begun, waits_for)], needs_attention = state()
    assert (name, begun, waits_for[:16], needs_attention) == (second.name, True, "the rest of its ", True)
    pair.apply(second)
    assert state() == ([(second.name, True, "its verification")], True)
    pair.verify(second)
    assert state() == ([], False)
    for taken_back, plan_names in ((second, [first.name]), (first, [])):
        pair.undo(taken_back, really=True)
        assert [name for name, _begun, _waits_for in state()[0]] == plan_names


def test_a_library_in_which_nobody_has_signed_in(installation: Installation) -> None:
    installation.add_v3("bare", "bare")
    libraries = installation.answer("status", status=4)["libraries"]
    assert [codes(library) for library in libraries if library["tenant"] == "bare"] == [["backup", "sign_in"]]


def test_the_scheduler_is_seen_in_dagsters_own_file(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table that is read is the one that this version of Dagster writes."""
    settings, now = load_settings(installation.folder / "bookferry.toml"), datetime.now(UTC)
    monkeypatch.setenv("DAGSTER_HOME", str(installation.folder / "home"))
    assert scheduler_runs(settings, now) is False
    (installation.folder / "home").mkdir()
    (installation.folder / "home" / "dagster.yaml").write_text("")
    with dg.DagsterInstance.from_config(str(installation.folder / "home")) as instance:
        assert scheduler_runs(settings, now) is False
        instance.add_daemon_heartbeat(DaemonHeartbeat(now.timestamp(), "SCHEDULER", "id", []))
    assert scheduler_runs(settings, now + timedelta(seconds=ALIVE_SECONDS - 1)) is True
    assert scheduler_runs(settings, now + timedelta(seconds=ALIVE_SECONDS + 1)) is False
    (installation.folder / "home" / "history" / "runs.db").write_bytes(b"no database")
    assert scheduler_runs(settings, now) is None


class TestFailedRuns:
    """What failed in the night is named, until it was done again."""

    @pytest.fixture(params=["file", "parts"])
    def history(
        self, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[dg.DagsterInstance]:
        """Dagster's history in its file, and in a database, as a `dagster.yaml` can name it."""
        home = tmp_path / "home"
        home.mkdir(mode=0o700)
        monkeypatch.setenv("DAGSTER_HOME", str(home))
        with ExitStack() as stack:
            if request.param == "file":
                (home / "dagster.yaml").write_text("")
            else:
                address = stack.enter_context(database(stack.enter_context(postgres_server())))
                parts = conninfo_to_dict(address)
                monkeypatch.setenv("HISTORY", address.replace("postgresql:", "postgresql+psycopg2:"))
                monkeypatch.setenv("HISTORY_NAME", str(parts["dbname"]))
                named = {
                    "username": parts.get("user", "postgres"),
                    "hostname": parts["host"],
                    "db_name": {"env": "HISTORY_NAME"},
                }
                (home / "dagster.yaml").write_text(json.dumps({"storage": {"postgres": {"postgres_db": named}}}))
                home /= "written"  # Dagster itself takes no socket there
                home.mkdir()
                storage = {"storage": {"postgres": {"postgres_url": {"env": "HISTORY"}}}}
                (home / "dagster.yaml").write_text(json.dumps(storage))
            yield stack.enter_context(dg.DagsterInstance.from_config(str(home)))

    def ended(
        self, history: dg.DagsterInstance, status: dg.DagsterRunStatus, job: str = "nightly_backup", **tags: str
    ) -> str:
        """A run that has ended now."""
        run = history.create_run_for_job(dg.GraphDefinition(job).to_job(), tags=tags)
        history.report_run_failed(run, "killed") if status is dg.DagsterRunStatus.FAILURE else _succeed(history, run)
        return run.run_id

    def test_they_are_named_until_they_are_done_again(self, history: dg.DagsterInstance, library: Installation) -> None:
        """Exit 3 until then. A backup that a person materialized is one. Runs of another Bookferry on the same instance do not count."""
        variables = {**library.sign_in, "DAGSTER_HOME": os.environ["DAGSTER_HOME"]}
        failure, success = dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.SUCCESS
        self.ended(history, failure, **{"bookferry/tenant": "library", "bookferry/data": "/srv/elsewhere"})
        assert library.answer("status", variables=variables)["failed_runs"] == []
        lost = self.ended(history, failure, SELECTED_ASSETS, **{"bookferry/tenant": "library"})
        shown = library.printed("status", status=3, variables=variables)
        assert shown[-1] == "NEEDS ATTENTION: library."
        [line] = [line for line in shown if "! Materialize of library failed at" in line]
        assert lost.partition("-")[0] in line
        [run] = library.answer("status", status=3, variables=variables)["failed_runs"]
        assert (run["run"], run["tenant"], run["job"]) == (lost, "library", "Materialize")
        self.ended(history, success, **{"bookferry/tenant": "library"})
        answer = library.answer("status", variables=variables)
        assert (answer["ok"], answer["failed_runs"]) == (True, [])
        settings, later = load_settings(library.folder / "bookferry.toml"), datetime.now(UTC) + timedelta(minutes=5)
        assert failed_runs(settings, later, {}) == [], "what counts is the night whose backups are the newest"


def _succeed(history: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    event = DagsterEvent(DagsterEventType.PIPELINE_SUCCESS.value, run.job_name, message="done")
    history.report_dagster_event(event, run.run_id)


def test_without_a_library(tmp_path: Path) -> None:
    (tmp_path / "bookferry.toml").write_text("")
    outcome = run("status", folder=tmp_path)
    assert (outcome.status, outcome.err) == (0, "")
    assert "`bookferry init --tenant NAME`" in outcome.out
