"""The report of the real library, and that of a hostile one, each made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.report.pages import Report
from pipelines.store.snapshots.snapshots import DataFolder
from tests.report.library import hostile_records, real_records, report_of


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report_of(DataFolder(tmp_path_factory.mktemp("real") / "library-data"), real_records())


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report_of(DataFolder(tmp_path_factory.mktemp("hostile") / "library-data"), hostile_records(), complete=False)


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    return DataFolder(tmp_path / "library-data")
