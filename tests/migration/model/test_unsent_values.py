"""The reason of a value that is not moved names what the person can really do."""

from __future__ import annotations

import pytest

from pipelines.migration.model.reasons import Reason, reason_unsent
from tests.migration.sample_plans import why_of


def reason(path: str, text: str | None = None) -> Reason:
    return reason_unsent(why_of(path, {"id": 3} if text is None else text), path, text)


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
        ("updated_at", "2026-11-20T10:00", "filled_by_service"),
        ("isbn", "  ", "blank"),
        ("published_on", "c. 2021", "no_day"),
        ("published_on", "2021-13", "no_day"),
        ("published_on", "2021", "part_of_date"),
        ("contributor", None, "no_user"),
        ("organization.address", "Main Street", "unknown_part"),
        ("categories[1]", None, "no_category"),
        ("categories[1]", "", "other_form"),
        ("categories[1].parent", None, "unknown_part"),
        ("identifiers[0]", None, "other_form"),
        ("collection_ids", None, "link"),
        ("authors[0].authority_id", None, "link"),
    ],
)
def test_the_code_of_a_value_of_which_nothing_was_learned(path: str, text: str | None, code: str) -> None:
    assert reason(path, text).code == code
