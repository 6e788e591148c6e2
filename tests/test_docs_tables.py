"""docs/tables.md agrees with the descriptions of the tables, and the descriptions agree with the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.tables import types
from pipelines.records.tables.registry import RAW_TABLES, STAGED, TABLES
from pipelines.store.catalogue import SNAPSHOTS, TABLES_READ, catalogue_in_memory, deleted_view
from pipelines.store.snapshots.snapshots import DataFolder
from tests.cli.command import ROOT, run
from tests.dictionary import markdown
from tests.store.snapshot_factory import make_snapshot, publication_payloads

PAGE = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")


def test_the_page_is_as_the_descriptions_are() -> None:
    assert markdown() == PAGE, "docs/tables.md is stale: run `make docs`"


@pytest.mark.long
def test_duckdb_has_the_described_columns_and_types(tmp_path: Path) -> None:
    data = DataFolder(tmp_path / "library-data")
    make_snapshot(data, publication_payloads(1))
    database = catalogue_in_memory(data)
    described = [*(table.impersonal for table in (*TABLES.values(), *RAW_TABLES)), SNAPSHOTS, TABLES_READ]
    described += [deleted_view(tables[0].impersonal) for tables in STAGED.values()]
    for table in described:
        view = database.view(table.name)
        view_types = dict(zip(view.columns, map(str, view.types), strict=True))
        assert view_types == {**view_types, **{column.name: types(column)["duckdb"] for column in table.columns}}, (
            table.name
        )


def test_the_command_describes_the_columns_of_each_kind_of_view(tmp_path: Path) -> None:
    gone = run("tables", "users_deleted", "--json", folder=tmp_path).document
    assert [column["column"] for column in gone["columns"]] == [
        column.name for column in deleted_view(TABLES["users"]).columns
    ]
    assert [column["column"] for column in gone["columns"] if column["personal"]] == [
        "email",
        "name",
        "residue",
        "sha256",
    ]
    copies = run("tables", "hard_copies", "--json", folder=tmp_path).document
    assert {column["column"]: column["references"] for column in copies["columns"] if column["references"]} == {
        "publication_id": "publications.id",
        "location_id": "locations.id",
    }
    assert copies["key"] == ["id"]
    run("tables", "raw_publications_deleted", "--json", folder=tmp_path).assert_failed(2, "There is no table")


def test_the_command_lists_the_rules(tmp_path: Path) -> None:
    """In the words of the page, which has them under headings."""
    listed = run("tables", "rules", "--json", folder=tmp_path).document["rules"]
    assert {rule["rule"]: rule["about"] for rule in listed}["check_digit"] == "Why a value is invalid"
    assert all(f"| `{rule['rule']}` |" in PAGE and f"\n### {rule['about']}\n" in PAGE for rule in listed)
    printed = run("tables", "rules", folder=tmp_path).out
    assert all(rule["rule"] in printed for rule in listed)
    assert "`bookferry tables rules`" in run("tables", "publication_identifiers", folder=tmp_path).out
