"""One rule merges a field from three sides."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from pipelines.migration.model.actions import Decision
from pipelines.migration.model.comparable import digest
from pipelines.migration.plan.field_merge import FieldVerdict, WrittenField, merge_field

SAME, PATCH, KEPT, EDITED, BOTH, CONFLICT = FieldVerdict
A, B, C = '"A"', '"B"', '"C"'
X, Y, XY, YX, XZ = '["x"]', '["y"]', '["x","y"]', '["y","x"]', '["x","z"]'


class Case(NamedTuple):
    """Both sides of a field now, both when an earlier plan wrote it (if one did), and what a person wants."""

    source: str | None
    target: str | None
    before: tuple[str | None, str | None] | None = None
    decision: Decision | None = None
    overwrite: bool = False
    is_set: bool = False

    @property
    def written(self) -> WrittenField | None:
        """What the journal has of it."""
        return None if self.before is None else WrittenField(*map(digest, self.before))


EXAMPLES = {
    # no plan has written the field
    "both_empty": (Case(None, None), SAME),
    "equal": (Case(A, A), SAME),
    "only_in_the_source": (Case(A, None), PATCH),
    "only_in_the_target": (Case(None, A), KEPT),
    "different": (Case(A, B), CONFLICT),
    # an earlier plan wrote it
    "nothing_changed": (Case(A, A, (A, A)), SAME),
    "nothing_changed_and_the_service_stored_another_form": (Case(A, B, (A, B)), SAME),
    "changed_in_the_source": (Case(B, A, (A, A)), PATCH),
    "removed_from_the_source": (Case(None, A, (A, A)), PATCH),
    "edited_in_the_target": (Case(A, B, (A, A)), EDITED),
    "changed_on_both_sides": (Case(B, C, (A, A)), BOTH),
    "changed_on_both_sides_alike": (Case(B, B, (A, A)), SAME),
    # a person decided
    "source_decided": (Case(A, B, decision=Decision.SOURCE), PATCH),
    "source_decided_where_it_is_empty": (Case(None, B, decision=Decision.SOURCE), PATCH),
    "target_decided": (Case(A, B, decision=Decision.TARGET), KEPT),
    "decided_and_equal": (Case(A, A, decision=Decision.SOURCE), SAME),
    "only_matched": (Case(A, B, decision=Decision.MATCH), CONFLICT),
    # the source's values count
    "overwritten": (Case(A, B, overwrite=True), PATCH),
    "overwritten_only_where_the_source_has_a_value": (Case(None, B, overwrite=True), KEPT),
    "overwritten_though_the_target_was_decided": (Case(A, B, decision=Decision.TARGET, overwrite=True), PATCH),
    # sets
    "set_in_another_order": (Case(XY, YX, is_set=True), KEPT),
    "set_with_more_in_the_source": (Case(XY, X, is_set=True), PATCH),
    "set_with_more_in_the_target": (Case(X, XY, is_set=True), KEPT),
    "sets_with_something_of_their_own": (Case(XY, XZ, is_set=True), CONFLICT),
    "set_with_more_in_the_source_and_edited_in_the_target": (Case(XY, X, (XY, XY), is_set=True), EDITED),
    "set_with_more_in_the_source_since": (Case(XY, X, (X, X), is_set=True), PATCH),
    "lists_that_are_no_sets": (Case(XY, X), CONFLICT),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_rule_of_a_three_way_merge(name: str) -> None:
    case, expected = EXAMPLES[name]
    verdict = merge_field(
        case.source,
        case.target,
        written=case.written,
        decision=case.decision,
        overwrite=case.overwrite,
        is_set=case.is_set,
    )
    assert verdict == expected


def test_a_guarded_field_is_never_added_to_a_record_that_exists() -> None:
    """The roles of a user who has an account in the target."""
    assert merge_field(A, None, guarded=True) == CONFLICT
    assert merge_field(A, None, guarded=True, decision=Decision.SOURCE) == PATCH
    assert merge_field(A, A, guarded=True) == SAME
    assert merge_field(None, A, guarded=True) == KEPT


def test_a_day_within_the_year_of_the_source_says_more_than_its_first_day() -> None:
    first, day, other_day = '"2021-01-01"', '"2021-06-08"', '"2020-06-08"'
    assert merge_field(first, day, begins="2021", decision=Decision.SOURCE) == KEPT
    assert merge_field(first, other_day, begins="2021") == CONFLICT
    assert merge_field(first, None, begins="2021") == PATCH


def test_nobody_edits_what_the_service_filled_itself() -> None:
    filled = WrittenField(None, digest(A), sent=False)
    assert merge_field(None, A, written=filled) == SAME
    assert merge_field(None, B, written=filled) == KEPT
    assert merge_field(C, A, written=filled) == PATCH
    assert merge_field(C, B, written=filled) == CONFLICT
