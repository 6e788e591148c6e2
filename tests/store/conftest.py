from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.store.snapshots import DataFolder


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    """An empty data folder."""
    return DataFolder(tmp_path / "library-data")
