"""The advice on values that are not moved names what the person can really do."""

from __future__ import annotations

import pytest

from pipelines.migration.model.resource_types import PUBLICATIONS, AdditionalFields, LeftOut
from pipelines.migration.model.unsent_values import (
    NO_CATEGORY,
    NO_DAY,
    NO_IDENTIFIER,
    NO_LINK,
    NO_TEXT,
    OTHER_FORM,
    UNKNOWN_FIELD,
    UNKNOWN_PART,
    advice_on_unsent,
    is_reference,
    reason_left_out,
)
from pipelines.records.additional_fields import FieldRule


@pytest.mark.parametrize(
    ("path", "value"),
    [("pmcid", "PMC3531190"), ("handle", "2027/tides"), ("urn", ""), ("local_number", "B-1234/5"), ("lccn", None)],
)
def test_an_identifier_of_an_unknown_type_can_be_described(path: str, value: str | None) -> None:
    """`[identifiers.pmcid]` moves it."""
    assert f"[identifiers.{path}]" in advice_on_unsent(path, value).suggestion


def test_a_field_in_capital_letters_needs_its_name_beside_the_type() -> None:
    assert '[identifiers.pmcid] with fields = ["PMCID"]' in advice_on_unsent("PMCID", "PMC1").suggestion


@pytest.mark.parametrize(
    ("path", "value"),
    [("printed", "2026-11-20"), ("note", "two words 1"), ("home", "https://example.org/1"), ("pages", 12)],
)
def test_nothing_is_claimed_of_a_field_of_which_nothing_was_learned(path: str, value: object) -> None:
    advice = advice_on_unsent(path, value)
    assert advice is UNKNOWN_FIELD
    assert "no place" not in advice.problem
    assert "bookferry describe" in advice.suggestion


def test_a_part_of_a_documented_field_a_managed_and_a_deprecated_field_have_their_own_reasons() -> None:
    assert advice_on_unsent("authors[0].orcid", "0000-0001") is UNKNOWN_PART
    assert "filled by the service" in advice_on_unsent("updated_at", "2026-11-20T10:00").problem
    assert "deprecated" in advice_on_unsent("import_state", "imported").problem


def test_a_value_of_a_publication_names_what_says_that_the_target_does_not_take_it() -> None:
    moved = {
        "binding": FieldRule(("paper", "cloth")),
        "pages": FieldRule(types=("integer",)),
        "shelf": FieldRule(),
    }
    left_out = {"subtitle": LeftOut.NOT_DESCRIBED, "handle": LeftOut.NOT_DESCRIBED, "series": LeftOut.NOT_SHOWN}
    fields = AdditionalFields(moved, dict(left_out))

    def reason(path: str, value: object = None) -> str:
        return reason_left_out({}, PUBLICATIONS, path, value, fields)

    assert [reason(name) for name in ("binding", "pages", "shelf", "subtitle", "series", "authors[0].x")] == [
        LeftOut.NOT_A_CHOICE,
        LeftOut.OTHER_TYPE,
        LeftOut.NOT_SENDABLE,
        LeftOut.NOT_DESCRIBED,
        LeftOut.NOT_SHOWN,
        "",
    ]
    assert reason("handle", "2027/tides") == "", "the configuration can describe it as an identifier"
    assert "own description" in advice_on_unsent("subtitle", "x", left_out=reason("subtitle")).problem


def test_nobody_is_told_to_do_what_is_done() -> None:
    """With --invalid-identifiers only blanks and values that are no text are left."""
    assert advice_on_unsent("isbn", None) is NO_IDENTIFIER
    assert advice_on_unsent("isbn", None, sends_invalid=True) is NO_TEXT
    assert "only blanks" in advice_on_unsent("isbn", "  ", sends_invalid=True).problem


def test_a_year_can_be_completed_or_sent_as_its_first_day() -> None:
    assert "--first-days" in advice_on_unsent("published_on", "2021").suggestion
    assert advice_on_unsent("published_on", "c. 2021") is advice_on_unsent("published_on", "2021-13") is NO_DAY
    assert "its first day, 2018-11-01, unless" in advice_on_unsent("published_on (precision)", "2018-11").problem


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
