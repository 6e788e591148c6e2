"""The advice on values that are not moved names what the person can really do."""

from __future__ import annotations

import pytest

from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.model.unsent_values import (
    NO_CATEGORY,
    NO_IDENTIFIER,
    NO_LINK,
    NO_PLACE,
    NO_TEXT,
    OTHER_FORM,
    advice_on_unsent,
    is_reference,
)


@pytest.mark.parametrize(
    ("path", "value"),
    [("pmcid", "PMC3531190"), ("handle", "2027/tides"), ("urn", ""), ("local_number", "B-1234/5"), ("lccn", None)],
)
def test_an_identifier_of_an_unknown_type_can_be_described(path: str, value: str | None) -> None:
    """`[identifiers.pmcid]` moves it, so "no place" would be untrue."""
    assert f"[identifiers.{path}]" in advice_on_unsent(path, value).suggestion


def test_a_field_in_capital_letters_needs_its_name_beside_the_type() -> None:
    assert '[identifiers.pmcid] with fields = ["PMCID"]' in advice_on_unsent("PMCID", "PMC1").suggestion


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("import_state", "imported"),
        ("updated_at", "2026-11-20T10:00"),
        ("printed", "2026-11-20"),
        ("note", "two words 1"),
        ("home", "https://example.org/1"),
        ("authors[0].orcid", "0000-0001"),
        ("pages", 12),
    ],
)
def test_other_values_have_no_place(path: str, value: object) -> None:
    assert advice_on_unsent(path, value) is NO_PLACE


def test_nobody_is_told_to_set_what_is_set() -> None:
    """With send_invalid_identifiers only blanks and values that are no text are left."""
    assert advice_on_unsent("isbn", None) is NO_IDENTIFIER
    assert advice_on_unsent("isbn", None, sends_invalid=True) is NO_TEXT
    assert "only blanks" in advice_on_unsent("isbn", "  ", sends_invalid=True).problem


def test_references_are_told_from_values() -> None:
    assert is_reference(PUBLICATIONS, "contributor", {"id": 1})
    assert is_reference(PUBLICATIONS, "categories[1]", {"id": 1})
    assert not is_reference(PUBLICATIONS, "categories[1]", 5)
    assert not is_reference(PUBLICATIONS, "categories[1].parent", 5)
    assert not is_reference(PUBLICATIONS, "organization.address", "Main Street")
    assert is_reference("hard_copies", "location_id", 4)
    assert not is_reference("hard_copies", "collection", 4)
    assert advice_on_unsent("categories[1]", {"id": 1}) is NO_CATEGORY
    assert advice_on_unsent("identifiers[0]", {"type": "doi"}) is OTHER_FORM
    assert advice_on_unsent("collection_ids", [1]) is NO_LINK
