"""Where the page of a record is: as configured, else learned from the records and called a guess, else unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from pipelines.errors import ConfigurationError
from pipelines.report.build import make_report
from pipelines.report.record_links import RecordLinks, addresses_in, learned, learned_links
from pipelines.settings.loading import load_settings
from pipelines.store.parquet import open_in_duckdb
from pipelines.store.snapshots.snapshots import DataFolder
from tests.report.library import NOW, lines_of, snapshot_of

LIBRARY = "https://library.example.org"


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (["/publications/12", "/publications/13"], "/publications/{id}"),
        (["/en/records/12/", "/en/records/13/"], "/en/records/{id}/"),
        (["/publications/12"], ""),
        (["/publications/12", "/books/13"], ""),
        (["/publications/12", "/publications/14"], ""),
        (["/api/v2/publications/12", "/api/v2/publications/13"], ""),
        (["/uploads/12/cover.jpg", "/uploads/13/cover.jpg"], ""),
        (["/publications/12?signature=1", "/publications/13?signature=2"], ""),
        (["/12/12", "/13/13"], ""),
        (["/12", "/13"], ""),
        (["/publications/{12}/12", "/publications/{12}/13"], ""),
    ],
)
def test_what_is_learned(addresses: list[str], expected: str) -> None:
    """Records that agree on an address that ends with their number; never the API's, nor that of a file."""
    found = [(12 + place, LIBRARY + address) for place, address in enumerate(addresses)]
    assert learned(found, LIBRARY) == (LIBRARY + expected if expected else "")


@pytest.mark.parametrize(
    "origin",
    [
        "http://library.example.org",
        "https://other.example.org",
        "https://user@library.example.org",
        "https://[",
        "ftp://x",
    ],
)
def test_an_address_elsewhere_is_none(origin: str) -> None:
    assert learned([(number, f"{origin}/publications/{number}") for number in (1, 2)], LIBRARY) == ""


def test_a_library_in_a_folder_of_its_host() -> None:
    """Its pages are below its base_url; the default port is no difference."""
    found = [(number, f"https://library.example.org:443/lib/publications/{number}") for number in (1, 2)]
    assert learned(found, f"{LIBRARY}/lib").endswith("/lib/publications/{id}")
    assert learned(found, f"{LIBRARY}/library") == ""


def records(**more: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "title": f"Title {number}",
            "isbn": "9684192914",
            **{key: value.format(number) for key, value in more.items()},
        }
        for number in (1, 2)
    ]


def test_the_records_say_where_their_pages_are(data: DataFolder) -> None:
    """The guess is named as one, on the page; both tables have the links."""
    snapshot = snapshot_of(data, records(url=f"{LIBRARY}/publications/{{}}"))
    report = make_report(data, snapshot, now=NOW)
    assert report.links == RecordLinks(f"{LIBRARY}/publications/{{id}}", "url")
    assert [line["link"] for line in lines_of(report)] == [f"{LIBRARY}/publications/{number}" for number in (1, 2)]
    with open_in_duckdb(Path(snapshot.address_of(snapshot.manifest.tables["raw_publications"]))) as database:
        rows = database.execute(addresses_in("file")).fetchall()
    assert learned_links(rows, LIBRARY) == report.links, "as a plan learns them of both libraries"
    sheet = load_workbook(report.paths.workbook).active
    assert sheet["H3"].hyperlink.target == f"{LIBRARY}/publications/2"
    page = Path(report.paths.html).read_text("utf-8")
    assert "are a guess" in page
    assert f'href="{LIBRARY}/publications/1"' in page


def test_what_is_configured_counts(data: DataFolder) -> None:
    snapshot = snapshot_of(data, records(url=f"{LIBRARY}/publications/{{}}"))
    report = make_report(data, snapshot, now=NOW, record_url="https://opac.example.org/r?id={id}")
    assert lines_of(report)[0]["link"] == "https://opac.example.org/r?id=1"
    assert "are a guess" not in Path(report.paths.html).read_text("utf-8")


def test_without_either_there_are_no_links(data: DataFolder) -> None:
    """Also where only some of the addresses would do."""
    mixed = records()
    mixed[0]["url"] = f"{LIBRARY}/publications/1"
    mixed[1]["url"] = "https://elsewhere.example.org/publications/2"
    report = make_report(data, snapshot_of(data, mixed), now=NOW)
    assert report.links == RecordLinks()
    assert {line["link"] for line in lines_of(report)} == {""}


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
