"""The report as a Dagster asset: its figures, and that a backup is what it is without it."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets_defs.definitions import build_definitions
from assets_defs.follow_ups import follow_up_assets
from pipelines.backup.flow import Backup
from pipelines.report.pages import Report
from pipelines.settings.settings import Settings
from pipelines.store.stores import open_data
from tests.assets_defs.test_definitions import settings_for
from tests.report.library import hostile_records, snapshot_of


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A library whose records mean harm, backed up once."""
    settings = settings_for(tmp_path_factory.mktemp("report"), "old")
    snapshot_of(open_data(settings), hostile_records(), complete=False)
    return settings


def materialized(library: Backup) -> dg.ExecuteInProcessResult:
    return dg.materialize(follow_up_assets(library.settings, "old", with_report=True), resources={"backup": library})


def test_its_figures(settings: Settings) -> None:
    """Of the newest snapshot, partial as it is."""
    with Backup(settings) as library:
        result = materialized(library)
    [event] = result.get_asset_materialization_events()
    metadata = event.materialization.metadata
    lines = Path(str(metadata["issues"].value)).read_text("utf-8").splitlines()
    assert metadata["to_do"].value == len(lines) - 1 - int(str(metadata["repaired"].value))
    assert (metadata["complete"].value, metadata["snapshot"].value) == (False, "old/20261120T020000Z")
    [check] = result.get_asset_check_evaluations()
    assert check.passed


class _Failing(Backup):
    def report(self, tenant: str) -> Report:  # noqa: ARG002  it is the same for all
        raise RuntimeError("the disk is full; see https://store.example.org/f?X-Amz-Signature=0123456789abcdef")


def test_a_report_that_fails_is_a_warning_and_no_failed_backup(settings: Settings) -> None:
    """The run succeeds; the check says what went wrong, without secrets (I10); no report is listed."""
    with _Failing(settings) as library:
        result = materialized(library)
    assert result.success
    assert result.get_asset_materialization_events() == []
    [check] = result.get_asset_check_evaluations()
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "the disk is full" in str(check.description)
    assert "0123456789abcdef" not in str(check.description)


def test_it_comes_after_the_snapshot(settings: Settings) -> None:
    job = build_definitions(settings).resolve_implicit_global_asset_job_def()
    graph = job.asset_layer.asset_graph
    assert graph.get(dg.AssetKey(["old", "report"])).parent_keys == {dg.AssetKey(["old", "snapshot"])}
