"""The report as a Dagster asset: its figures, and that a backup is what it is without it."""

from __future__ import annotations

import dagster as dg
import pytest

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
