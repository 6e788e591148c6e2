"""A drill proves that a snapshot with files can be put back, and fails where it cannot (I12)."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest

from pipelines.drill import drill
from pipelines.records.files import KEPT
from pipelines.settings.config_file import load_settings
from pipelines.store.maintenance.results import DRILLS, DrillResult
from pipelines.store.snapshots.snapshots import Snapshot, blob_key
from pipelines.store.stores import open_data
from tests.migration.conftest import RECORDS
from tests.migration.library_pair import LibraryPair
from tests.store.snapshot_factory import publish_records

NOW = datetime(2026, 11, 21, 18, tzinfo=UTC)


def drill_snapshot(pair: LibraryPair, snapshot: Snapshot) -> DrillResult:
    settings = load_settings(pair.config)
    return drill(settings, open_data(settings), snapshot, now=NOW)


def files_in(snapshot: Snapshot) -> list[dict[str, object]]:
    rows = pq.read_table(snapshot.path / "publication_files.parquet").to_pylist()
    return [row for row in rows if row["status"] == KEPT]


@pytest.mark.long
def test_a_drill_restores_every_record_and_file(pair: LibraryPair, snapshot: Snapshot) -> None:
    """It fails after one bit of a blob changed."""
    result = drill_snapshot(pair, snapshot)
    files = files_in(snapshot)
    assert (result.ok, result.records, result.files) == (True, RECORDS, len(files))
    assert result.problems == [f"the values of 1 field: import_state ({RECORDS})."], "version 3 does not take it"
    data = open_data(load_settings(pair.config))
    assert DRILLS.last(data, *snapshot.name.split("/")) == result
    folder = pair.config.parent / "library-data"
    assert not list(folder.glob(".drill-*"))
    blob = folder / blob_key(str(files[0]["sha256"]))
    content = bytearray(blob.read_bytes())
    content[len(content) // 2] ^= 1
    blob.chmod(0o600)
    blob.write_bytes(content)
    result = drill_snapshot(pair, snapshot)
    assert not result.ok
    assert blob.name in " ".join(result.problems)
    assert result.problems_count >= 1


def test_a_drill_names_what_bookferry_left_out_and_what_the_snapshot_lacks(pair: LibraryPair) -> None:
    """Its sandbox has what the snapshot has, so that nothing is lacking there."""
    data = open_data(load_settings(pair.config))
    unknown = ["records", "see_a", "see_b", "see_c", "see_d", "see_e"]
    links = [{"type": "publication", "id": 1}, {"type": "location", "id": 1}]
    records: dict[str, list[dict[str, object]]] = {
        "publications": [
            {"id": 1, "title": "Tides"},
            {"id": 2, "title": "", "abstract": "A"},
            {"id": 3, "title": None, "abstract": "B"},
        ],
        "collections": [
            {
                "id": 1,
                "name": "Seas",
                "members": [{"publication_id": 1}],
                "links": links,
                **{key: [1] for key in unknown},
            }
        ],
        "locations": [{"id": 1, "name": "Main"}],
        "hard_copies": [
            {"id": 1, "publication_id": 1, "location_id": 99, "barcode": "B1"},
            {"id": 2, "publication_id": 77, "location_id": 1, "barcode": "B2"},
        ],
    }
    payloads = {resource: [json.dumps(record) for record in entries] for resource, entries in records.items()}
    result = drill_snapshot(pair, publish_records(data, payloads))
    *problems, references = result.problems
    assert sorted(problems) == [
        "1 hard copy cannot be put back: The snapshot does not have its location.",
        "1 hard copy cannot be put back: The snapshot does not have the record to which it refers.",
    ]
    fields = ", ".join(f"collections.{name}" for name in unknown)
    assert references.startswith(f"6 references: {fields}, ")
    assert "Bookferry does not know which records those are" in references
    assert "target" not in " ".join(result.problems)
    assert result.lost == "left out by Bookferry: 6 references"


def test_a_drill_restores_what_authors_have_besides(pair: LibraryPair) -> None:
    """The records to which they lead, too; of one that the snapshot lacks, the reference is named."""
    data = open_data(load_settings(pair.config))
    author = {"name": "Ada", "type": "person", "orcid": "0000-0002-1825-0097", "authority_id": 7}
    records: dict[str, list[dict[str, object]]] = {
        "publications": [{"id": 1, "title": "Tides", "authors": [author, {"name": "Bo", "authority_id": 8}]}],
        "authorities": [{"id": 7, "name": "Lovelace"}],
    }
    payloads = {resource: [json.dumps(record) for record in entries] for resource, entries in records.items()}
    result = drill_snapshot(pair, publish_records(data, payloads))
    assert (result.ok, result.records, result.lost) == (True, 2, "left out by Bookferry: 1 reference")
    [reference] = result.problems
    assert reference.startswith("1 reference: authors[].authority_id.")
