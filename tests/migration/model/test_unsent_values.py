"""The reason of a value that is not moved names what the person can really do."""

from __future__ import annotations

import pytest

from pipelines.migration.model.reasons import LACKING, Kind, Reason
from pipelines.migration.model.resource_types import PUBLICATIONS, AdditionalFields, LeftOut
from pipelines.migration.model.unsent_values import reason_unsent
from pipelines.records.additional_fields import FieldRule

NOTHING_LEARNED = AdditionalFields()


def reason(path: str, text: str | None = None, fields: AdditionalFields = NOTHING_LEARNED) -> Reason:
    return reason_unsent({}, fields, PUBLICATIONS, path, text)


@pytest.mark.parametrize(
    ("path", "text"),
    [("pmcid", "PMC3531190"), ("handle", "2027/tides"), ("urn", ""), ("local_number", "B-1234/5"), ("lccn", None)],
)
def test_an_identifier_of_an_unknown_type_can_be_described(path: str, text: str | None) -> None:
    """`[identifiers.pmcid]` moves it."""
    assert f"[identifiers.{path}]" in reason(path, text).suggestion


def test_a_field_in_capital_letters_needs_its_name_beside_the_type() -> None:
    assert '[identifiers.pmcid] with fields = ["PMCID"]' in reason("PMCID", "PMC1").suggestion


@pytest.mark.parametrize(
    ("path", "text", "code"),
    [
        ("printed", "2026-11-20", "not_shown"),
        ("note", "two words 1", "not_shown"),
        ("home", "https://example.org/1", "not_shown"),
        ("pages", None, "not_shown"),
        ("authors[0].orcid", "0000-0001", "unknown_part"),
        ("updated_at", "2026-11-20T10:00", "filled_by_service"),
        ("import_state", "imported", "deprecated"),
        ("isbn", None, "no_text"),
        ("isbn", "9780306406158", "check_digit"),
        ("published_on", "c. 2021", "no_day"),
        ("published_on", "2021-13", "no_day"),
        ("published_on", "2021", "part_of_date"),
        ("contributor", None, "no_user"),
        ("organization.address", "Main Street", "unknown_part"),
        ("categories[1]", None, "no_category"),
        ("categories[1]", "Maps", "other_form"),
        ("categories[1].parent", None, "unknown_part"),
        ("identifiers[0]", None, "other_form"),
        ("collection_ids", None, "link"),
        ("authors[0].authority_id", None, "link"),
    ],
)
def test_the_code_of_a_value_of_which_nothing_was_learned(path: str, text: str | None, code: str) -> None:
    assert reason(path, text).code == code


def test_a_value_of_a_publication_names_what_says_that_the_target_does_not_take_it() -> None:
    moved = {
        "binding": FieldRule(("paper", "cloth")),
        "pages": FieldRule(types=("integer",)),
        "shelf": FieldRule(),
    }
    left_out = {"subtitle": LeftOut.NOT_DESCRIBED, "handle": LeftOut.NOT_DESCRIBED, "series": LeftOut.NOT_SHOWN}
    fields = AdditionalFields(moved, dict(left_out))
    assert [reason(name, None, fields).code for name in ("binding", "pages", "shelf", "subtitle", "series")] == [
        LeftOut.NOT_A_CHOICE,
        LeftOut.OTHER_TYPE,
        LeftOut.NOT_SENDABLE,
        LeftOut.NOT_DESCRIBED,
        LeftOut.NOT_SHOWN,
    ]
    assert reason("handle", "2027/tides", fields).code == "unknown_identifier", "the configuration can describe it"


def test_a_year_can_be_completed_or_sent_as_its_first_day() -> None:
    assert "--first-days" in reason("published_on", "2021").suggestion
    assert "its first day, 2018-11-01, unless" in reason("published_on (precision)", "2018-11").problem


def test_references_are_lacking_and_other_values_are_not() -> None:
    assert Kind.REFERENCES in LACKING
    assert {reason(path).kind for path in ("contributor", "organization", "categories[1]", "collection_ids")} == {
        Kind.REFERENCES
    }
    assert reason_unsent({}, NOTHING_LEARNED, "hard_copies", "location_id", None).kind == Kind.REFERENCES
    assert {reason(path).kind for path in ("shelf", "authors[0].orcid", "import_state")} == {Kind.FIELDS}
