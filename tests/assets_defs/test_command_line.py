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
"""Metadata and checks that differ between snapshots."""

SINCE_THE_LAST = {"added", "changed", "removed", "new", "solved"}
"""Metadata that only the second report has."""

OF_THE_SECOND = {"snapshot", "report", "files"}
"""Assets that differ for a second backup, which has fetched no new files and knows the first."""


def pages(installation: DagsterInstallation) -> Pages:
    """What Dagster shows of the library `old`: metadata of the latest materializations, and the latest result of each check."""
    instance = installation.instance
    materialized: dict[str, dict[str, Any]] = {}
    for key in instance.all_asset_keys():
        event = instance.get_latest_materialization_event(key)
        if key.path[0] == "old" and event is not None and event.asset_materialization is not None:
            materialized[key.path[-1]] = plain(event.asset_materialization.metadata)
    checks = {}
    for check in build_definitions(installation.settings).resolve_asset_graph().asset_check_keys:
        history = instance.event_log_storage.get_asset_check_execution_history(check, limit=1)
        event = history[0].event if history else None
        if check.asset_key.path[0] == "old" and event is not None and event.dagster_event is not None:
            result = event.dagster_event.asset_check_evaluation_data
            checks[check.asset_key.path[-1], check.name] = (
                result.passed,
                result.severity.value,
                result.description or "",
            )
    return materialized, checks


def status_of(installation: DagsterInstallation, *command: str) -> int:
    """The exit status of a command; by default of a backup."""
    with installation.bookferry(*(command or ("backup", "old"))) as process:
        process.communicate()
    return process.returncode


@pytest.mark.parametrize(
    ("trouble", "status"),
    [
        pytest.param("none", 0, marks=pytest.mark.long),
        pytest.param("partial", 3, marks=pytest.mark.long),
        ("failed", 4),
    ],
)
def test_a_backup_is_shown_as_that_of_a_run(
    installation: DagsterInstallation,
    sandbox: SandboxProcess,
    monkeypatch: pytest.MonkeyPatch,
    trouble: str,
    status: int,
) -> None:
    """The same assets with the same metadata; of one that is not complete, the same checks are red, with the same reasons."""
    if trouble == "partial":
        sandbox.change("library", variations={"x_total_error": 2})
    if trouble == "failed":
        monkeypatch.setenv("TEST_PASSWORD", f"{PASSWORD}-mistyped")
    assert status_of(installation) == status
    told, told_checks = pages(installation)
    assert installation.instance.get_runs() == []
    assert installation.run("old").success is (trouble != "failed")
    ran, ran_checks = pages(installation)
    assert told.keys() == ran.keys()
    assert bool(told) is (trouble != "failed")
    for name, metadata in ran.items():
        assert metadata.keys() - OF_ITS_TIME - SINCE_THE_LAST == told[name].keys() - OF_ITS_TIME, name
        keys = metadata.keys() - {"dagster/uri", "bytes"} if name not in OF_THE_SECOND else set[str]()
        assert {key: metadata[key] for key in keys} == {key: told[name][key] for key in keys}, name
    assert trouble == "failed" or told_checks.keys() == ran_checks.keys()
    lasting = {check: result for check, result in ran_checks.items() if check[1] not in OF_ITS_TIME}
    red = {check: result for check, result in lasting.items() if not result[0]}
    assert (("snapshot", "complete") in red) is (trouble != "none")
    assert red.items() <= told_checks.items()
    for check in lasting.keys() & told_checks.keys():
        assert lasting[check][:2] == told_checks[check][:2], check


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
def test_verifications_and_drills_are_shown(installation: DagsterInstallation) -> None:
    """What a person names is not the library's last verification. That is older than the next backup, whoever made it."""
    job = build_definitions(installation.settings).resolve_job_def("verify_backups")
    assert status_of(installation) == 0
    [snapshot] = installation.snapshots
    assert status_of(installation, "snapshots", "verify", snapshot.name) == 0
    assert "verification" not in pages(installation)[0]
    assert (status_of(installation, "snapshots", "verify", "old"), status_of(installation, "drill", "old")) == (0, 3)
    materialized, checks = pages(installation)
    for name, check, passed in (("verification", "intact", True), ("drill", "restorable", False)):
        assert (materialized[name]["snapshot"], checks[name, check][0]) == (snapshot.manifest.snapshot, passed)
    assert not is_outdated(installation, "verification")
    assert status_of(installation) == 0
    assert is_outdated(installation, "verification")
    selection = [dg.AssetKey(["old", "verification"])]
    assert job.execute_in_process(instance=installation.instance, asset_selection=selection).success
    assert not is_outdated(installation, "verification")
    assert installation.run("old").success
    assert is_outdated(installation, "verification")
    assert not is_outdated(installation, "snapshot")
    unreadable = snapshot.path.with_name("snapshot=20200101T000000Z")
    unreadable.mkdir()
    (unreadable / "manifest.json").write_text("{")
    assert status_of(installation, "snapshots", "verify", "old") == 6
    assert pages(installation)[1]["verification", "intact"][0] is False, "although the newest snapshot is intact"
