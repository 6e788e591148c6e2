"""Where the page of a record is: as configured, else as the records show it, else unknown."""

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


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        ([f"{LIBRARY}/publications/12", f"{LIBRARY}/publications/13"], f"{LIBRARY}/publications/{{}}"),
        ([f"{LIBRARY}/publications/12"], ""),
        ([f"{LIBRARY}/publications/12", f"{LIBRARY}/books/13"], ""),
        ([f"{LIBRARY}/api/v2/publications/12", f"{LIBRARY}/api/v2/publications/13"], ""),
        ([f"{LIBRARY}/files/12/cover.jpg", f"{LIBRARY}/files/13/cover.jpg"], ""),
        ([f"{LIBRARY}/publications/12?signature=1", f"{LIBRARY}/publications/13?signature=2"], ""),
        (["https://elsewhere.example.org/12", "https://elsewhere.example.org/13"], ""),
    ],
)
def test_without_it_the_records_may_show_it(data: DataFolder, addresses: list[str], expected: str) -> None:
    """An address of the library's own pages on which all agree, and which ends with the record's number."""
    records = [
        {"id": number, "title": f"Title {number}", "isbn": "9684192914", "url": address}
        for number, address in enumerate(addresses, 12)
    ]
    snapshot = snapshot_of(data, records)
    report = make_report(data, snapshot, now=NOW)
    links = {line["link"] for line in lines_of(report)}
    assert links == ({expected.format(number) for number in (12, 13)} if expected else {""})
    assert ('href="https' in Path(report.paths.html).read_text("utf-8")) == bool(expected)
    if expected:  # what is configured counts, in both tables, and on the page
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
