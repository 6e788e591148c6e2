"""What the command line tells Dagster is what a run of the job records: the same assets, metadata and checks."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from assets_defs.definitions import build_definitions
from tests.assets_defs.installation import PASSWORD, DagsterInstallation, plain
from tests.sandbox.process import SandboxProcess

Pages = tuple[dict[str, dict[str, Any]], dict[tuple[str, str], tuple[bool, str, str]]]

OF_ITS_TIME = {
    "nothing_new_announced",
    "recent_complete_backup",
    "snapshot",
    "dagster/uri",
    "page",
    "issues",
    "workbook",
    "preview",
    "notes",
    "new",
}
"""Metadata, and checks, that are others for each snapshot."""

SINCE_THE_LAST = {"added", "changed", "removed", "new", "solved"}
"""Metadata that only the second report has."""


def pages(installation: DagsterInstallation) -> Pages:
    """What Dagster shows of the library `old`: metadata of the latest materializations, and the latest result of each check."""
    instance = installation.instance
    materialized: dict[str, dict[str, Any]] = {}
    for key in instance.all_asset_keys():
        event = instance.get_latest_materialization_event(key)
        if key.path[0] == "old" and event is not None and event.asset_materialization is not None:
            materialized[key.path[-1]] = plain(event.asset_materialization.metadata)
    checks = {}
    for name in materialized or {"raw_publications": {}, "snapshot": {}}:
        key = dg.AssetKey(["old", name])
        for check in CHECKS.get(name, ("required_columns",)):
            history = instance.event_log_storage.get_asset_check_execution_history(
                dg.AssetCheckKey(key, check), limit=1
            )
            event = history[0].event if history else None
            if event is not None and event.dagster_event is not None:
                result = event.dagster_event.asset_check_evaluation_data
                checks[name, check] = (result.passed, result.severity.value, result.description or "")
    return materialized, checks


def status_of(installation: DagsterInstallation) -> int:
    """The exit status of a backup by the command line."""
    with installation.bookferry("backup", "old") as backup:
        backup.communicate()
    return backup.returncode


CHECKS = {
    "raw_publications": ("count_equals_x_total", "ids_unique", "readable"),
    "files": ("every_file_kept",),
    "snapshot": ("complete", "nothing_new_announced", "recent_complete_backup"),
    "report": ("made",),
}


@pytest.mark.long
def test_a_backup_is_shown_as_that_of_a_run(installation: DagsterInstallation) -> None:
    assert status_of(installation) == 0
    told = pages(installation)
    assert installation.instance.get_runs() == []
    assert installation.run("old").success
    ran = pages(installation)
    assert told[0].keys() == ran[0].keys()
    assert len(told[0]) > len(CHECKS)
    for name, metadata in ran[0].items():
        assert metadata.keys() - OF_ITS_TIME - SINCE_THE_LAST == told[0][name].keys() - OF_ITS_TIME, name
        if name not in (
            "snapshot",
            "report",
            "files",
        ):  # the second backup has fetched no new files, and knows the first
            same = metadata.keys() - {"dagster/uri", "bytes"}  # a file has the name of its snapshot
            assert {key: metadata[key] for key in same} == {key: told[0][name][key] for key in same}, name
    assert (
        told[1].keys()
        == ran[1].keys()
        == {(name, check) for name in told[0] for check in CHECKS.get(name, ("required_columns",))}
    )
    told_again = {check: result[:2] for check, result in told[1].items() if check[1] != "nothing_new_announced"}
    assert told_again.items() <= {check: result[:2] for check, result in ran[1].items()}.items()


@pytest.mark.parametrize("trouble", [pytest.param("partial", marks=pytest.mark.long), "failed"])
def test_a_backup_that_is_not_complete(
    installation: DagsterInstallation, sandbox: SandboxProcess, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """The same checks are red, with the same reasons."""
    if trouble == "partial":
        sandbox.change("library", variations={"x_total_error": 2})
    else:
        monkeypatch.setenv("TEST_PASSWORD", f"{PASSWORD}-mistyped")
    assert status_of(installation) == (3 if trouble == "partial" else 4)
    told = pages(installation)
    assert installation.run("old").success is (trouble == "partial")
    ran = pages(installation)
    assert bool(told[0]) is (trouble == "partial")
    assert told[0].keys() == ran[0].keys()
    red = {check: result for check, result in ran[1].items() if not result[0] and check[1] not in OF_ITS_TIME}
    assert red.keys() >= {("snapshot", "complete")}
    assert red.items() <= told[1].items()


def test_a_backup_is_good_although_dagster_cannot_be_told(installation: DagsterInstallation) -> None:
    """It has answered by then, and says in one line what is missing."""
    storage = installation.folder / "dagster-home" / "dagster.yaml"
    storage.write_text("storage: {sqlite: {base_dir: /dev/null/nowhere}}\n")
    with installation.bookferry("backup", "old") as backup:
        out, err = backup.communicate()
    assert out.splitlines()[-1].startswith("Complete: 120 publications;")
    [warning] = [line for line in err.splitlines() if line.startswith("! Dagster")]
    assert "Dagster could not be told of old/" in warning
    assert "nothing has to be repeated" in warning
    assert "Traceback" not in err
    assert [snapshot.manifest.complete for snapshot in installation.snapshots] == [True]


def is_outdated(installation: DagsterInstallation, name: str) -> bool:
    """Whether the pages say of an asset that what it is made of is newer."""
    graph, context = build_definitions(installation.settings).resolve_asset_graph(), installation.instance
    resolver = CachingStaleStatusResolver(context, graph, LoadingContextForTest(context))
    return resolver.get_status(dg.AssetKey(["old", name])) is StaleStatus.STALE


@pytest.mark.long
def test_a_verification_is_older_than_the_next_backup(installation: DagsterInstallation) -> None:
    """Whoever made it, and whoever verified."""
    job = build_definitions(installation.settings).resolve_job_def("verify_backups")
    selection = [dg.AssetKey(["old", "verification"])]
    assert status_of(installation) == 0
    assert job.execute_in_process(instance=installation.instance, asset_selection=selection).success
    assert not is_outdated(installation, "verification")
    assert status_of(installation) == 0
    assert is_outdated(installation, "verification")
    assert job.execute_in_process(instance=installation.instance, asset_selection=selection).success
    assert not is_outdated(installation, "verification")
    assert installation.run("old").success
    assert is_outdated(installation, "verification")
    assert not is_outdated(installation, "snapshot")


@pytest.mark.long
def test_verifications_and_drills_are_shown(installation: DagsterInstallation) -> None:
    """An older snapshot, which a person names, is not the library's last verification."""
    assert status_of(installation) == 0
    [snapshot] = installation.snapshots

    def ended(*command: str) -> int:
        with installation.bookferry(*command) as process:
            process.communicate()
        return process.returncode

    def shown(name: str, check: str) -> tuple[str, bool]:
        """The snapshot of the latest materialization, and the latest result of the check."""
        key = dg.AssetKey(["old", name])
        event = installation.instance.get_latest_materialization_event(key)
        storage = installation.instance.event_log_storage
        history = storage.get_asset_check_execution_history(dg.AssetCheckKey(key, check), limit=1)
        assert event is not None
        assert event.asset_materialization is not None
        recorded = history[0].event
        assert recorded is not None
        assert recorded.dagster_event is not None
        result = recorded.dagster_event.asset_check_evaluation_data
        return plain(event.asset_materialization.metadata)["snapshot"], result.passed

    assert ended("snapshots", "verify", snapshot.name) == 0
    assert installation.instance.get_latest_materialization_event(dg.AssetKey(["old", "verification"])) is None
    assert ended("snapshots", "verify", "old") == ended("drill", "old") == 0
    assert shown("verification", "intact") == (snapshot.manifest.snapshot, True)
    assert shown("drill", "restorable") == (snapshot.manifest.snapshot, True)
    unreadable = snapshot.path.with_name("snapshot=20200101T000000Z")
    unreadable.mkdir()
    (unreadable / "manifest.json").write_text("{")
    assert ended("snapshots", "verify", "old") == 6
    assert shown("verification", "intact")[1] is False, "although the newest snapshot is intact"
