"""Publications in the form of version 3: nothing raises, and what is not sent is listed (I6, I7)."""

from __future__ import annotations

import json
import re
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.records.forms import PublicationForm, add_unsent_files, form_of
from pipelines.records.identifiers.configured import kinds_of
from pipelines.records.identifiers.verdicts import GOOD, VERDICTS
from pipelines.records.matching import comparable, differing, fingerprint, identifying_keys
from pipelines.records.residue import ADDRESSES, residue_json
from pipelines.records.tables.publication_fields import IDENTIFIER_FIELDS, WRITTEN
from pipelines.records.values import decode_record, partial_date
from pipelines.settings.identifier_types import IdentifierSettings
from tests.records.json_values import records, text_of

SIGNED = "https://storage.example/a.pdf?X-Amz-Signature=abc"
STORED = {"id": "f1", "storage": "store", "metadata": {"size": 7, "filename": "a.pdf", "mime_type": "application/pdf"}}
RECORD: dict[str, Any] = {
    "id": 7,
    "title": "The Doomsday Key",
    "publishable_type": "Book",
    "published_on": "2009-06-23",
    "abstract": "",
    "authors": [{"name": "James Rollins", "type": "person"}],
    "doi": None,
    "isbn": "61231401",
    "issn": None,
    "arxiv_id": None,
    "pmid": "99999999999",
    "import_state": "imported",
    "categories": [{"id": 3, "name": "Novels"}, {"id": 4, "name": "Adventure"}],
    "contributor": {"id": 12, "name": "A. Librarian"},
    "organization": None,
    "cover": {**STORED, "id": "c1", "url": SIGNED},
    "assets": [
        {"id": 5, "publication_id": 7, "name": "A", "content_type": "application/pdf", "file": STORED, "url": SIGNED}
    ],
}
PMCID = kinds_of(
    {"pmcid": IdentifierSettings(pattern="PMC[1-9][0-9]*", fields=("pmc", "pmcid"), identifies=True).model_dump()}
)


def form(**changes: Any) -> PublicationForm:
    return form_of({**RECORD, **changes})


def test_what_is_sent_is_what_the_document_lists() -> None:
    """service.md#publications: every field under its name; ids and files of the old library are not attributes of the new record."""
    publication = form()
    assert publication.fields == {
        "title": "The Doomsday Key",
        "publishable_type": "Book",
        "published_on": "2009-06-23",
        "authors": [{"name": "James Rollins", "type": "person"}],
        "identifiers": [{"type": "isbn", "value": "9780061231407"}],
        "categories": [{"name": "Novels"}, {"name": "Adventure"}],
        "contributor": {"id": 12},
    }
    assert publication.unsent == {"pmid": "99999999999", "import_state": "imported"}


def test_what_cannot_be_sent_is_named() -> None:
    """I6: what the document does not allow is not invented, and is listed under its path."""
    publication = form(
        published_on="June 2009",
        authors=["A. Nother", {"name": "B", "type": "editor", "orcid": "0"}, {"type": "person"}, None],
        categories=["Novels", {"id": 3}, {"name": "Novels", "parent": 1}],
        contributor={"name": "nobody"},
        organization="x",
        identifiers=[{"type": "doi", "value": "10.1000/182"}, {"type": "doi"}],
        isbn=["9780306406158", "978030640615X"],
        title=9,
        note=f"see {SIGNED}",
    )
    add_unsent_files({"assets": [{"id": 5, "pages": 9}, "x"]}, publication)
    assert publication.fields["authors"] == [{"name": "A. Nother", "type": "person"}, {"name": "B", "type": "person"}]
    assert publication.fields["categories"] == [{"name": "Novels"}]
    assert not {"title", "published_on", "contributor", "organization"} & publication.fields.keys()
    assert set(publication.unsent) == {
        "pmid",
        "import_state",
        "published_on",
        "authors[1].type",
        "authors[1].orcid",
        "authors[2]",
        "authors[3]",
        "categories[1]",
        "categories[2].parent",
        "contributor",
        "organization",
        "assets[0].pages",
        "assets[1]",
        "identifiers[1]",
        "isbn",
        "isbn'",
        "title",
        "note",
    }
    assert SIGNED not in f"{residue_json(publication.unsent)}", "addresses of files are signed (I10)"


@given(st.text() | st.from_regex(r"[0-9]{4}(-[0-9]{2}){0,2}", fullmatch=True))
@example("2018/7/9")
@example("July 2018")
def test_a_date_is_sent_listed_or_both(sent: str) -> None:
    """I6: a day is sent, a year or a month as its first day where that is wanted, with a word; any other text is listed."""
    left_out, first_day = form_of({"published_on": sent}), form_of({"published_on": sent}, first_day=True)
    date = partial_date(sent)
    if date is None:
        assert left_out.fields == first_day.fields == {}
        assert left_out.unsent == first_day.unsent == ({"published_on": sent} if sent else {})
    elif date.precision == "day":
        assert left_out.fields == first_day.fields == {"published_on": date.first.isoformat()}
        assert left_out.unsent == first_day.unsent == {}
    else:
        assert (left_out.fields, left_out.unsent) == ({}, {"published_on": sent})
        assert first_day.fields == {"published_on": date.first.isoformat()}
        assert first_day.unsent == {"published_on (precision)": sent}


@given(records)
def test_each_value_of_any_record_is_sent_or_listed(value: Any) -> None:
    """Total (I7), and nothing is left out in silence (I6): a field is sent, its path is listed, or it is ignored by name."""
    record = decode_record(text_of(value).encode())
    for sent, first_day in product((GOOD, frozenset(VERDICTS)), (False, True)):
        publication = form_of(record, sent=sent, first_day=first_day)
        assert set(publication.fields) <= set(WRITTEN)
        json.dumps(publication.fields, ensure_ascii=False).encode()
        named = {re.split(r"[.\[ ]", path)[0] for path in publication.unsent}
        ignored = {*ADDRESSES, *IDENTIFIER_FIELDS, "id", "cover", "assets"}
        for key, content in record.items():
            if content not in (None, "", []) and key not in ignored:
                assert key in publication.fields or re.split(r"[.\[ ]", key)[0] in named


@pytest.mark.long
@given(records)
def test_what_was_sent_reads_as_wanted(value: Any) -> None:
    """Idempotent (I7): version 3's response to a form has the same form, without differences."""
    record = decode_record(text_of(value).encode())
    expected = form_of(record)
    response = form_of({**expected.fields, "id": 1})
    assert response.fields == expected.fields
    assert response.unsent == {}
    assert differing(comparable(expected.fields), comparable(response.fields)) == []
    fingerprint(expected.fields)
    identifying_keys(expected.fields)


class TestMatching:
    """I8: identifiers that name one publication, and those that do not."""

    def keys(self, **fields: Any) -> list[tuple[str, str]]:
        """Identifying keys of a record with these fields."""
        return identifying_keys(form_of(fields, PMCID).fields, PMCID)

    def test_identifiers_that_name_one_publication(self) -> None:
        """An ISSN names a journal; an ISBN on an article names its book; a configured type has its own setting."""
        fields = {"doi": "doi:10.1000/A", "isbn": "0306406152", "issn": "1521-4095", "pmid": "x", "pmc": "PMC7"}
        assert self.keys(**fields, publishable_type="Article") == [("doi", "10.1000/a"), ("pmcid", "PMC7")]
        assert ("isbn", "9780306406157") in self.keys(**fields, publishable_type="Book")

    @pytest.mark.parametrize(
        ("changes", "is_same"),
        [
            ({"title": "the DOOMSDAY key."}, True),
            ({"title": "Thé Doomsday Key"}, True),
            ({"authors": [{"name": "Rollins, James", "type": "person"}]}, True),
            ({"authors": [*RECORD["authors"], {"name": "B"}]}, True),
            ({"published_on": "2009-01-01"}, True),
            ({"published_on": "2010-06-23"}, False),
            ({"title": "The Doomsday Keys"}, False),
            ({"authors": [{"name": "J. Rollins", "type": "person"}]}, False),
            ({"title": None}, None),
            ({"published_on": None}, None),
            ({"authors": None}, None),
        ],
    )
    def test_a_fingerprint_is_title_year_and_first_author(self, changes: dict[str, Any], is_same: bool | None) -> None:
        """Case, accents, punctuation and the order of names do not matter; with less than all three there is none."""
        changed_fingerprint = fingerprint(form(**changes).fields)
        assert (changed_fingerprint and changed_fingerprint == fingerprint(form().fields)) is is_same

    @pytest.mark.parametrize(
        ("changes", "differ"),
        [
            ({"id": 8, "cover": None, "assets": []}, []),
            ({"isbn": None, "identifiers": [{"type": "ISBN", "value": "0-06-123140-2"}]}, ["identifiers"]),
            ({"isbn": None, "identifiers": [{"type": "ISBN", "value": "0-06-123140-1"}]}, []),
            ({"categories": [{"name": "Adventure"}, {"name": "Novels"}]}, []),
            ({"categories": [{"name": "Adventure"}]}, ["categories"]),
            ({"abstract": None}, []),
            ({"title": "The Doomsday Key "}, ["title"]),
            ({"authors": None, "published_on": "2009"}, ["published_on", "authors"]),
            ({"contributor": {"id": 13}}, ["contributor"]),
        ],
    )
    def test_what_counts_as_different(self, changes: dict[str, Any], differ: list[str]) -> None:
        """Absent, null and empty are equal; categories and identifiers have no order; everything else must agree in every character."""
        assert differing(comparable(form().fields), comparable(form(**changes).fields)) == differ


def test_values_that_are_no_identifiers_are_sent_as_they_stand_where_all_are() -> None:
    """The option --invalid-identifiers; blanks are nothing that could be sent."""
    record = {"id": 1, "isbn": "no number", "issn": "  ", "doi": "n/a"}
    publication = form_of(record, sent=frozenset(VERDICTS))
    assert publication.fields["identifiers"] == [
        {"type": "doi", "value": "n/a"},
        {"type": "isbn", "value": "no number"},
    ]
    assert publication.unsent == {"issn": "  "}
    assert "identifiers" not in form_of(record).fields
