"""Where the page of a record is: as configured, else unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from openpyxl import load_workbook

from pipelines.errors import ConfigurationError
from pipelines.report.build import make_report
from pipelines.report.rendering import link_to
from pipelines.settings.config_file import load_settings
from pipelines.store.snapshots.snapshots import DataFolder
from tests.report.library import NOW, lines_of, snapshot_of

LIBRARY = "https://library.example.org"


def test_records_lead_to_their_pages(data: DataFolder) -> None:
    """In both tables and on the page; without the setting nowhere, whatever the records show."""
    records = [
        {"id": number, "title": f"Title {number}", "isbn": "9684192914", "url": f"{LIBRARY}/publications/{number}"}
        for number in (12, 13)
    ]
    snapshot = snapshot_of(data, records)
    report = make_report(data, snapshot, now=NOW)
    assert {line["link"] for line in lines_of(report)} == {""}
    assert 'href="https' not in Path(report.paths.html).read_text("utf-8")
    report = make_report(data, snapshot, now=NOW, record_url="https://opac.example.org/r?id={id}")
    assert lines_of(report)[0]["link"] == "https://opac.example.org/r?id=12"
    sheet = load_workbook(report.paths.workbook).active
    assert sheet["H3"].hyperlink.target == "https://opac.example.org/r?id=13"
    assert 'href="https://opac.example.org/r?id=12"' in Path(report.paths.html).read_text("utf-8")


def test_a_plan_names_no_address_of_another_kind() -> None:
    """The template may come from a file (I13)."""
    assert link_to("https://a/{id}", 3) == "https://a/3"
    assert link_to("javascript:alert({id})", 3) == link_to("", 3) == link_to("https://a/{id}", None) == ""


@pytest.mark.parametrize(
    "address",
    [
        "https://a/b",
        "https://a/{id}/{id}",
        "javascript:{id}",
        "https://u:p@a/{id}",
    ],
)
def test_a_mistake_in_the_configuration(tmp_path: Path, address: str) -> None:
    path = tmp_path / "bookferry.toml"
    path.write_text(f'[tenants.old]\nbase_url = "{LIBRARY}"\napi = "v2"\nrecord_url = "{address}"\n')
    with pytest.raises(ConfigurationError, match="record_url"):
        load_settings(path)
