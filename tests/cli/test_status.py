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
from pipelines.overview.libraries import ProblemCode, overview
from pipelines.scopes import SCOPES
from pipelines.settings.config_file import load_settings
from pipelines.store.stores import open_data
from tests.backup.other_resources.signing import sign_in
from tests.cli.command import Installation, Outcome, run
from tests.cli.conftest import SMALL
from tests.cli.terminal import printed
from tests.postgres import database, postgres_server
from tests.sandbox.process import SandboxProcess


@pytest.fixture
def installation(sandbox: SandboxProcess, tmp_path: Path) -> Installation:
    """A library of three pages, not backed up yet."""
    return Installation.make(tmp_path, sandbox, "small")


def libraries(outcome: Outcome) -> dict[str, Any]:
    return {one["tenant"]: one for one in outcome.document["libraries"]}


def codes(library: dict[str, Any]) -> list[str]:
    return [problem["code"] for problem in library["problems"]]


@pytest.mark.long
def test_before_and_after_the_first_backup(installation: Installation) -> None:
    """Nothing is written and no library is asked: before the first backup there is no data folder, and no sign-in either."""
    before = run("status", "--json", folder=installation.folder)
    assert (before.status, before.document["ok"], before.document["scheduler"]) == (3, False, False), before.err
    assert (libraries(before)["small"]["backup"], codes(libraries(before)["small"])) == (None, ["backup"])
    assert not (installation.folder / "library-data").exists()
    made = installation.backup("--json").document
    after = run("status", "--json", folder=installation.folder)
    assert (after.status, after.document["ok"]) == (0, True), after.err
    library = libraries(after)["small"]
    assert (
        library["backup"].items()
        >= {"snapshot": made["snapshot"], "records": SMALL, "files": made["files"]["kept"]}.items()
    )
    assert (library["days_left"], library["last_verified"], library["problems"]) == (
        (datetime(2026, 12, 31, tzinfo=UTC).date() - datetime.now(UTC).date()).days,
        None,
        [],
    )


@pytest.mark.long
@pytest.mark.parametrize("columns", [60, 120])
def test_one_screen(columns: int, library: Installation) -> None:
    """Every number is there whole, at each width; the last line is the verdict."""
    lines = [line for line in printed("status", folder=library.folder, columns=columns) if line]
    assert len(lines) < 24
    text = "\n".join(lines)
    assert "5,445" in text
    assert "library" in text
    assert lines[-1] == "All is well: 1 library."


def test_an_old_backup_and_a_partial_one(installation: Installation) -> None:
    """With the clock of a day and an hour later, and after a backup that did not end well."""
    installation.backup("--json")
    settings = load_settings(installation.folder / "bookferry.toml")
    later = overview(settings, open_data(settings), datetime.now(UTC) + timedelta(hours=27))
    assert [problem.code for problem in later.libraries[0].problems] == [ProblemCode.BACKUP]
    assert later.exit_status == 3
    soon = overview(settings, open_data(settings), datetime.now(UTC) + timedelta(hours=25))
    assert (soon.libraries[0].problems, soon.exit_status) == ([], 0)
    manifest = next((installation.folder / "library-data").glob("snapshots/*/*/manifest.json"))
    newer = manifest.parent.with_name("snapshot=20991231T000000Z")
    newer.mkdir()
    (newer / "manifest.json").write_text(
        manifest.read_text()
        .replace('"complete": true', '"complete": false')
        .replace(manifest.parent.name[9:], newer.name[9:])
    )
    done = run("status", "--json", folder=installation.folder)
    assert (done.status, codes(libraries(done)["small"])) == (3, ["backup"])
    assert "20991231T000000Z" in libraries(done)["small"]["problems"][0]["message"]
    assert libraries(done)["small"]["backup"]["snapshot"] == manifest.parent.name[9:]


def test_damage(installation: Installation) -> None:
    """A failed verification shows until the snapshot is verified well, or gone."""
    installation.backup("--json")
    table = next((installation.folder / "library-data").glob("snapshots/*/*/publications.parquet"))
    content = table.read_bytes()
    table.chmod(0o600)
    table.write_bytes(content[:-1])
    assert installation.run("snapshots", "verify").status == 6
    done = run("status", "--json", folder=installation.folder)
    assert (done.status, codes(libraries(done)["small"])) == (3, ["damaged"])
    assert libraries(done)["small"]["last_verified"]["ok"] is False
    table.write_bytes(content)
    assert installation.run("snapshots", "verify").status == 0
    assert run("status", folder=installation.folder).status == 0


def test_a_migration_that_was_begun(installation: Installation, sandbox: SandboxProcess) -> None:
    """A plan waits; one that was begun needs attention until its verification found the target equal, or a later one was begun."""
    config = installation.add_v3("bare", "bare")
    signed_out = run("status", "--json", folder=installation.folder)
    assert (signed_out.status, codes(libraries(signed_out)["bare"])) == (4, ["backup", "sign_in"])
    sign_in(config, "bare", sandbox, "bare", SCOPES)
    installation.backup("--json")
    plan = installation.run("migrate", "plan", "small", "bare", "--newest", "--json").document["plan"]

    def state() -> tuple[list[tuple[str, bool, str]], list[str]]:
        document = run("status", "--json", folder=installation.folder).document
        [bare] = (one for one in document["libraries"] if one["tenant"] == "bare")
        return [(one["plan"], one["begun"], one["waits_for"]) for one in document["plans"]], [
            problem["code"] for problem in bare["problems"] if problem["code"] == "migration"
        ]

    assert state() == ([(plan, False, "its application")], [])
    assert installation.run("migrate", "apply", plan, "--limit", "10").status == 0
    first, plan = plan, installation.run("migrate", "plan", "small", "bare", "--newest", "--json").document["plan"]
    assert [name for name, _begun, _waits_for in state()[0]] == [first, plan]
    assert installation.run("migrate", "apply", plan, "--limit", "10").status == 0
    [(name, begun, waits_for)], found = state()
    assert (name, begun, found) == (plan, True, ["migration"])
    assert waits_for.startswith("the rest of its ")
    assert installation.run("migrate", "apply", plan).status == 0
    assert state() == ([(plan, True, "its verification")], ["migration"])
    assert installation.run("migrate", "verify", plan).status == 0
    assert state() == ([], [])
    for taken_back, left in ((plan, [first]), (first, [])):
        assert installation.run("migrate", "undo", taken_back, "--really").status == 0
        assert [name for name, _begun, _waits_for in state()[0]] == left


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
                whole = {"storage": {"postgres": {"postgres_url": {"env": "HISTORY"}}}}
                (home / "dagster.yaml").write_text(json.dumps(whole))
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
        assert library.run("status", "--json", variables=variables).document["failed_runs"] == []
        lost = self.ended(history, failure, SELECTED_ASSETS, **{"bookferry/tenant": "library"})
        shown = library.run("status", variables=variables)
        assert (shown.status, shown.lines[-1]) == (3, "NEEDS ATTENTION: library.")
        assert "! Materialize of library failed at" in shown.out
        assert lost.partition("-")[0] in shown.out
        [run] = library.run("status", "--json", variables=variables).document["failed_runs"]
        assert (run["run"], run["tenant"], run["job"]) == (lost, "library", "Materialize")
        self.ended(history, success, **{"bookferry/tenant": "library"})
        again = library.run("status", "--json", variables=variables)
        assert (again.status, again.document["ok"], again.document["failed_runs"]) == (0, True, [])
        settings, later = load_settings(library.folder / "bookferry.toml"), datetime.now(UTC) + timedelta(minutes=5)
        assert failed_runs(settings, later, {}) == [], "what counts is the night whose backups are the newest"


def _succeed(history: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    event = DagsterEvent(DagsterEventType.PIPELINE_SUCCESS.value, run.job_name, message="done")
    history.report_dagster_event(event, run.run_id)


def test_without_a_library(tmp_path: Path) -> None:
    (tmp_path / "bookferry.toml").write_text("")
    done = run("status", folder=tmp_path)
    assert (done.status, done.err) == (0, "")
    assert "`bookferry init --tenant NAME`" in done.out
