"""A backup stages into Postgres and into Iceberg tables where the settings name them; `bookferry stage` does it again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from pipelines.store.snapshots.snapshots import DataFolder
from tests.cli.command import Installation
from tests.postgres import database, postgres_server
from tests.sandbox.process import SandboxProcess

UNREACHABLE = "postgresql://me:sesame-open@127.0.0.1:1/nothing"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """An empty database."""
    with postgres_server() as server, database(server) as one:
        yield one


def test_a_failed_load_leaves_a_good_snapshot_that_stage_loads(
    address: str, sandbox: SandboxProcess, tmp_path: Path
) -> None:
    """Exit 1, the snapshot complete, no password; then `stage` shows it, and says the same in words and in JSON (I10)."""
    installation = Installation.make(tmp_path, sandbox, "small")
    config = tmp_path / "bookferry.toml"
    config.write_text(f'postgres_env = "TEST_POSTGRES"\n{config.read_text()}')
    failed = installation.backup("--json", variables={**installation.sign_in, "TEST_POSTGRES": UNREACHABLE})
    failed.assert_failed(
        1, "is complete and published, but not in Postgres", "postgresql://127.0.0.1:1/nothing cannot be reached"
    )
    (snapshot,) = DataFolder(tmp_path / "library-data").snapshots()
    assert snapshot.manifest.complete
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"sesame-open" in path.read_bytes()]

    variables = {"TEST_POSTGRES": address}
    done = installation.run("stage", "--json", variables=variables)
    assert done.status == 0, done.err
    (staged,) = done.document["staged"]
    assert (staged["tenant"], staged["snapshot"], staged["schema"]) == ("small", snapshot.manifest.snapshot, "small")
    assert (staged["tables"]["publications"], staged["left_out"], staged["notes"]) == (120, [], [])
    printed = installation.run("stage", "small", variables=variables)
    assert printed.lines[-1].startswith(
        f"Postgres shows small/{snapshot.manifest.snapshot}: {staged['rows']:,} rows (0 changed) in 5 tables"
    )
    with psycopg.connect(address) as connection:
        assert connection.execute("SELECT count(*) FROM library.publications").fetchall() == [(120,)]
    night = installation.backup(variables={**installation.sign_in, **variables})
    said = next(line for line in night.lines if line.startswith("Postgres shows"))
    assert re.search(rf"{staged['rows']:,} rows \(0 changed\) in 5 tables", said)  # addresses of files are signed anew


@pytest.mark.long
def test_a_failed_registration_leaves_a_good_snapshot_that_stage_registers(
    sandbox: SandboxProcess, tmp_path: Path
) -> None:
    """Exit 1, the snapshot complete, no password; then `stage` registers it, and `prune` lets go of what it removes (I10)."""
    installation = Installation.make(tmp_path, sandbox, "small")
    config = tmp_path / "bookferry.toml"
    config.write_text(f'{config.read_text()}\n[iceberg]\nuri_env = "TEST_CATALOGUE"\n')
    sign_in = installation.sign_in
    failed = installation.backup("--json", variables={**sign_in, "TEST_CATALOGUE": UNREACHABLE})
    failed.assert_failed(
        1, "is complete and published, but not in the Iceberg tables", "postgresql://127.0.0.1:1/nothing", "stage small"
    )
    (snapshot,) = DataFolder(tmp_path / "library-data").snapshots()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"sesame-open" in path.read_bytes()]

    variables = {**sign_in, "TEST_CATALOGUE": f"sqlite:///{tmp_path}/catalogue.db"}
    done = installation.run("stage", "--json", variables=variables)
    assert (done.status, "staged" in done.document) == (0, False), done.err
    (registered,) = done.document["iceberg"]
    assert (registered["snapshot"], registered["tables"]["publications"]) == (snapshot.manifest.snapshot, 120)
    assert len(registered["added"]) == 5
    printed = installation.run("stage", "small", variables=variables)
    assert printed.lines[-1].startswith(
        f"Iceberg tables have small/{snapshot.manifest.snapshot}: {registered['rows']:,} rows in 5 tables"
    )
    second = installation.backup("--json", variables=variables)
    assert [one["snapshot"] for one in second.document["iceberg"]] == [second.document["snapshot"]]
    assert "Iceberg tables have small/" in installation.backup(variables=variables).out
    config = tmp_path / "bookferry.toml"
    config.write_text(f"{config.read_text()}\n[retention]\nkeep_last = 1\n")
    pruned = installation.run("snapshots", "prune", "--json", variables=variables)
    assert len(pruned.document["removed"]) == 2
    properties = {"uri": variables["TEST_CATALOGUE"], "warehouse": f"file://{tmp_path}/library-data/iceberg"}
    with SqlCatalog("bookferry", **properties) as catalog:
        assert catalog.load_table("library.publications").scan().to_arrow().num_rows == 120
