"""service.md#publications, #search and #lists, in version 2 with the real library."""

from __future__ import annotations

import pytest

from tests.sandbox.conftest import Service

V2_FIELDS = [
    "id",
    "title",
    "publishable_type",
    "published_on",
    "abstract",
    "authors",
    "doi",
    "isbn",
    "issn",
    "arxiv_id",
    "pmid",
    "import_state",
    "categories",
    "cover",
    "assets",
]


def titles(service: Service, **query: str) -> list[str]:
    return [record["title"] for record in service.get("/publications", params=query).json()["records"]]


def ids(service: Service, **query: object) -> list[int]:
    return [record["id"] for record in service.get("/publications", params=query).json()["records"]]


def test_identifiers_are_flat_fields(library: Service) -> None:
    """service.md#identifiers: v2 has flat fields."""
    for record in library.get("/publications", params={"per_page": 50}).json()["records"]:
        assert list(record) == V2_FIELDS
        for name in ("doi", "isbn", "issn", "arxiv_id", "pmid"):
            assert record[name] is None or isinstance(record[name], str)


def test_a_record_with_files_shows_cover_and_assets(library: Service) -> None:
    """service.md#covers and #assets: `id`, `storage` and `metadata` with `size`, `filename` and `mime_type`."""
    record = next(
        record
        for page in range(1, 20)
        for record in library.get(f"/publications/all?per_page=50&page={page}").json()["records"]
        if record["cover"] and record["assets"]
    )
    assert list(record["cover"]) == ["id", "storage", "metadata", "url"]
    assert record["cover"]["storage"] == "store"
    for asset in record["assets"]:
        assert list(asset) == [
            "id", "publication_id", "name", "content_type", "file", "url", "thumb_url", "preview_url",
        ]  # fmt: skip
        assert asset["publication_id"] == record["id"]
        assert list(asset["file"]) == ["id", "storage", "metadata"]
        assert isinstance(asset["file"]["metadata"]["size"], int)
        assert list(asset["file"]["metadata"]) == ["size", "filename", "mime_type"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("doi", "10.1186/s12874-018-0482-1"),
        ("doi", "  10.1186/S12874-018-0482-1 "),
        ("isbn", "61231401"),
        ("issn", "2056-9890"),
        ("arxiv_id", "1606.00931"),
        ("pmid", "27493967"),
    ],
)
def test_every_identifier_can_be_searched(library: Service, name: str, value: str) -> None:
    """service.md#search: parameters for five identifiers. Assumption: they compare the whole value, without case and outer blanks."""
    records = library.get("/publications", params={name: value}).json()["records"]
    assert records
    assert {record[name].casefold() for record in records} == {value.strip().casefold()}


def test_a_part_of_an_identifier_finds_nothing(library: Service) -> None:
    """Assumption: an identifier parameter compares the whole value."""
    assert ids(library, doi="10.1186/s12874") == []


def test_author_search_ignores_case_and_accents(library: Service) -> None:
    """service.md#search: `author`."""
    assert 30 in ids(library, author="ghali ibrahim")
    assert ids(library, author="nobody-of-that-name") == []


def test_category_search_takes_the_name(library: Service) -> None:
    """service.md#search: `category`."""
    assert 30 in ids(library, category="egypt -- history.")
    assert ids(library, category="Egypt") == []


def test_year_search_takes_the_year_of_publication(library: Service) -> None:
    """service.md#search: `year`."""
    records = library.get("/publications?year=1983").json()["records"]
    assert records
    assert all(record["published_on"].startswith("1983-") for record in records)
    assert [ids(library, year=year) for year in ("19", "x", "1983-05", "１９８３", "19 83")] == [[]] * 5
    assert "2016-06-07" in [
        record["published_on"] for record in library.get("/publications?year=2016").json()["records"]
    ]
    assert ids(library, year="2016-06") == []


def test_full_text_search_needs_every_word(library: Service) -> None:
    """service.md#search: `query` is full text. Assumption: every word has to occur."""
    found = titles(library, query="convolutional protein binding")
    assert "Convolutional neural network architectures for predicting DNA–protein binding" in found
    assert titles(library, query="convolutional -- (protein) binding") == found
    assert titles(library, query="convolutional xyzzy") == []
    assert titles(library, query="--") == []


def test_the_backup_list_has_everything_whatever_the_filters(library: Service) -> None:
    """service.md#lists: `/publications/all` lists every publication. Assumption: it ignores filters."""
    assert library.get("/publications/all?year=1983").headers["X-Total"] == "5445"


def test_lists_are_ordered_by_id(library: Service) -> None:
    """Assumption: a list is ordered by ascending id."""
    assert ids(library, per_page=50, page=2) == list(range(51, 101))
