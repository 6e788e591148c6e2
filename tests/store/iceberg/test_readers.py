"""Other programs read from the Iceberg tables the same rows as `bookferry query`."""

from __future__ import annotations

import json
import subprocess
import sys

import polars as pl
import pytest

from pipelines.backup.iceberg import register_again
from pipelines.store.iceberg.catalogue import NAME, catalogue_settings
from tests.store.iceberg.conftest import Counts, Library, counts, queried

SQL = "SELECT tenant, snapshot, count(*) FROM {} GROUP BY ALL"
READ_BY_RAY = """
import json, ray, sys
from collections import Counter
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
for table in sys.argv[2:]:
    rows = ray.data.read_iceberg(table_identifier=table, catalog_kwargs=json.loads(sys.argv[1]), selected_fields=("tenant", "snapshot"))
    print(json.dumps([*Counter((row["tenant"], row["snapshot"]) for row in rows.take_all()).items()]))
"""


def as_counts(rows: list[tuple[str, str, int]]) -> Counts:
    return {(tenant, snapshot): number for tenant, snapshot, number in rows}


@pytest.fixture
def three(library: Library, monkeypatch: pytest.MonkeyPatch) -> Library:
    """Three snapshots of two libraries, one of which has a new column and a widened one."""
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")  # Polars' own planner is another package
    library.night(3, tasks=[{"id": 1, "shelf": 5}])
    library.night(4, day=1, tasks=[{"id": 1, "shelf": "A 5", "new": True}, {"id": 2, "shelf": "B"}])
    library.night(2, tenant="new")
    for tenant in ("old", "new"):
        register_again(library.tables, library.data, tenant, history=True)
    return library


@pytest.mark.long
@pytest.mark.parametrize("name", ["publications", "publication_identifiers", "tasks"])
def test_programs_on_this_machine(three: Library, name: str) -> None:
    """PyIceberg, DuckDB over what PyIceberg gives it, and Polars' own reader, which goes by the field ids."""
    table, expected = three.table(name), queried(three, name)
    assert expected
    assert counts(table.scan().to_arrow()) == expected
    with table.scan().to_duckdb(table_name="rows") as database:
        assert as_counts(database.execute(SQL.format("rows")).fetchall()) == expected
    polars = pl.scan_iceberg(table, reader_override="native").group_by("tenant", "snapshot").len().collect()
    assert as_counts(polars.rows()) == expected
    [task] = table.scan(row_filter="tenant = 'old' and snapshot = '20261120T020000Z'").plan_files()
    assert task.file.record_count == expected["old", "20261120T020000Z"]


@pytest.mark.long
def test_ray(three: Library) -> None:
    """An engine of several machines: its workers open the files themselves."""
    chosen = catalogue_settings(three.settings)
    catalogue = json.dumps({"name": NAME, "type": chosen.kind, **chosen.properties})
    names = ("publications", "tasks")
    command = [sys.executable, "-W", "ignore", "-c", READ_BY_RAY, catalogue, *(f"library.{name}" for name in names)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    for name, line in zip(names, process.stdout.splitlines()[-len(names) :], strict=True):
        assert {(tenant, snapshot): rows for (tenant, snapshot), rows in json.loads(line)} == queried(three, name)
