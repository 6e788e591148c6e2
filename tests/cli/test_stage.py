"""A backup stages into Postgres and into Iceberg tables where the settings name them; `bookferry stage` does it again."""

from __future__ import annotations

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
    with postgres_server() as server, database(server) as postgres_address:
        yield postgres_address


@pytest.mark.parametrize("place", ["postgres", "iceberg"])
def test_what_failed_leaves_a_good_snapshot_that_stage_shows(
    place: str, sandbox: SandboxProcess, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Exit 1, the snapshot complete, no password (I10); then `stage` shows it, in words and in JSON; `prune` lets go of what it removes."""
    installation, config = Installation.make(tmp_path, sandbox, "small"), tmp_path / "bookferry.toml"
    text, lacks, shows = config.read_text(), "but not in the Iceberg tables", "Iceberg tables have small/"
    if place == "postgres":
        address, lacks, shows = request.getfixturevalue("address"), "but not in Postgres", "Postgres shows small/"
        config.write_text(f'postgres_env = "TEST_PLACE"\n{text}')
    else:
        address = f"sqlite:///{tmp_path}/catalogue.db"
        config.write_text(f'{text}\n[iceberg]\nuri_env = "TEST_PLACE"\n')

    failed = installation.backup("--json", variables={**installation.sign_in, "TEST_PLACE": UNREACHABLE})
    failed.assert_failed(1, f"is complete and published, {lacks}", "postgresql://127.0.0.1:1/nothing")
    (snapshot,) = DataFolder(tmp_path / "library-data").snapshots()
    assert snapshot.manifest.complete
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"sesame-open" in path.read_bytes()]

    variables = {**installation.sign_in, "TEST_PLACE": address}
    document = installation.answer("stage", variables=variables)
    (staged,) = document["staged" if place == "postgres" else "iceberg"]
    assert (staged["tenant"], staged["snapshot"]) == ("small", snapshot.manifest.snapshot)
    assert (staged["tables"]["publications"], len(staged["tables"])) == (120, 5)
    message = installation.printed("stage", "small", variables=variables)[-1]
    assert message.startswith(f"{shows}{snapshot.manifest.snapshot}: {sum(staged['tables'].values()):,} rows")
    assert "in 5 tables" in message
    assert shows in installation.backup(variables=variables).out
    config.write_text(f"{config.read_text()}\n[retention]\nkeep_last = 1\n")
    assert len(installation.answer("snapshots", "prune", variables=variables)["removed"]) == 1
    assert shown(place, address, tmp_path) == 120


def shown(place: str, address: str, folder: Path) -> int:
    """How many publications other programs see."""
    if place == "postgres":
        with psycopg.connect(address) as connection:
            [(count,)] = connection.execute("SELECT count(*) FROM library.publications").fetchall()
            return int(count)
    properties = {"uri": address, "warehouse": f"file://{folder}/library-data/iceberg"}
    with SqlCatalog("bookferry", **properties) as catalog:
        return catalog.load_table("library.publications").scan().to_arrow().num_rows
