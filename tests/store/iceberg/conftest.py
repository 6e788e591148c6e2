"""A catalogue of each kind, with data in a folder and in a bucket."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from pipelines.backup.iceberg import open_tables
from pipelines.settings.config_file import load_settings
from pipelines.settings.settings import Settings
from pipelines.store.catalogue import open_catalogue
from pipelines.store.iceberg import catalogue
from pipelines.store.iceberg.tables import IcebergTables
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from pipelines.store.stores import open_data
from tests.postgres import database
from tests.store.s3 import S3
from tests.store.snapshot_factory import STARTED_AT, publication_payloads, publish_records

Counts = dict[tuple[str, str], int]


@dataclass
class Library:
    """A data folder with its Iceberg tables."""

    settings: Settings

    @property
    def data(self) -> DataFolder:
        """The snapshots."""
        return open_data(self.settings)

    @property
    def tables(self) -> IcebergTables:
        """What is tested."""
        return open_tables(self.settings, self.data)

    @property
    def catalog(self) -> Catalog:
        """PyIceberg's own view of the catalogue."""
        return catalogue.open_catalogue(catalogue.catalogue_settings(self.settings), self.settings.data)

    def table(self, name: str = "publications") -> Table:
        """One table, as it is now."""
        with self.catalog as catalog:
            return catalog.load_table(("library", name))

    @property
    def names(self) -> list[str]:
        """The names of the tables."""
        with self.catalog as catalog:
            return [name for _, name in catalog.list_tables("library")]

    def night(
        self,
        publications: int = 3,
        *,
        day: int = 0,
        tenant: str = "old",
        complete: bool = True,
        **lists: Sequence[Mapping[str, Any]],
    ) -> Snapshot:
        """A snapshot; `lists`: resource → records."""
        records = {resource: [json.dumps(record) for record in listing] for resource, listing in lists.items()}
        if publications:
            records["publications"] = publication_payloads(publications)
        now = STARTED_AT + timedelta(days=day)
        return publish_records(self.data, records, tenant=tenant, now=now, complete=complete)


def counts(rows: pa.Table) -> Counts:
    """(tenant, snapshot) → rows."""
    groups = rows.select(["tenant", "snapshot"]).group_by(["tenant", "snapshot"]).aggregate([([], "count_all")])
    return {(row["tenant"], row["snapshot"]): row["count_all"] for row in groups.to_pylist()}


def queried(library: Library, name: str) -> Counts:
    """The same, as `bookferry query` has it."""
    with open_catalogue(library.data) as database:
        rows = database.execute(f'SELECT tenant, snapshot, count(*) FROM "{name}_history" GROUP BY ALL').fetchall()
    return {(tenant, snapshot): number for tenant, snapshot, number in rows}


def settings_in(folder: Path, data: str = "library-data", iceberg: str = "") -> Settings:
    """Settings with two libraries and a catalogue."""
    path = folder / "bookferry.toml"
    tenants = "".join(
        f'[tenants.{name}]\nbase_url = "https://{name}.example.org"\napi = "v2"\n' for name in ("old", "new")
    )
    work = 'work = "work"\n' if "://" in data else ""
    path.write_text(f'data = "{data}"\n{work}[iceberg]\n{iceberg}\n{tenants}')
    return load_settings(path)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """Data in a folder whose name has a blank, with the catalogue that is there by default."""
    return Library(settings_in(tmp_path, "library data"))


@pytest.fixture(params=["sqlite, folder", pytest.param("postgres, s3", marks=pytest.mark.long)])
def each_kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """Each kind of catalogue and of storage."""
    kind, _, place = request.param.partition(", ")
    data = "library-data"
    if place == "s3":
        server: S3 = request.getfixturevalue("s3")
        data = f"s3://{server.bucket()}/some/prefix"
    if kind == "sqlite":
        yield Library(settings_in(tmp_path, data))
        return
    with database(request.getfixturevalue("state_server")) as address:
        monkeypatch.setenv("TEST_CATALOGUE", address)
        yield Library(settings_in(tmp_path, data, 'uri_env = "TEST_CATALOGUE"'))
