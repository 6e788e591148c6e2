"""Where the page of a record is: as configured, else unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from openpyxl import load_workbook

from pipelines.errors import ConfigurationError
from pipelines.report.build import make_report
from pipelines.report.rendering import link_to
from pipelines.settings.loading import load_settings
from pipelines.store.snapshots.snapshots import DataFolder
from tests.report.library import NOW, lines_of, snapshot_of

LIBRARY = "https://library.example.org"


RECORDS = [{"id": number, "title": f"Title {number}", "isbn": "9684192914"} for number in (1, 2)]


def test_what_is_configured_counts(data: DataFolder) -> None:
    """In both tables, and on the page."""
    report = make_report(data, snapshot_of(data, RECORDS), now=NOW, record_url="https://opac.example.org/r?id={id}")
    assert lines_of(report)[0]["link"] == "https://opac.example.org/r?id=1"
    sheet = load_workbook(report.paths.workbook).active
    assert sheet["H3"].hyperlink.target == "https://opac.example.org/r?id=2"
    assert 'href="https://opac.example.org/r?id=1"' in Path(report.paths.html).read_text("utf-8")


def test_a_plan_names_no_address_of_another_kind() -> None:
    """The template may come from a file (I13)."""
    assert link_to("https://a/{id}", 3) == "https://a/3"
    assert link_to("javascript:alert({id})", 3) == link_to("", 3) == link_to("https://a/{id}", None) == ""


@pytest.mark.parametrize(
    "address",
    [
        "https://a/b",
        "https://a/{id}/{id}",
        "https://a/{id}/{x}",
        "javascript:{id}",
        "https://u:p@a/{id}",
        "https://a/{id} b",
        "https://{id}.a/",
    ],
)
def test_a_mistake_in_the_configuration(tmp_path: Path, address: str) -> None:
    path = tmp_path / "bookferry.toml"
    path.write_text(f'[tenants.old]\nbase_url = "{LIBRARY}"\napi = "v2"\nrecord_url = "{address}"\n')
    with pytest.raises(ConfigurationError, match="record_url"):
        load_settings(path)
