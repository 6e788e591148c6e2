"""One rule merges a field from three sides, and two engines follow it: each example runs through both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import duckdb
import pytest

from pipelines.migration.model.actions import Decision
from pipelines.migration.model.comparable import Field, digest
from pipelines.migration.plan.field_merge import CONFLICTS, FieldVerdict, WrittenField, merge_field
from pipelines.migration.plan.three_way_merge import merge_three_ways

SAME, PATCH, KEPT, EDITED, BOTH, CONFLICT = FieldVerdict
A, B, C = '"A"', '"B"', '"C"'
X, Y, Z, XY, YX, XZ = '["x"]', '["y"]', '["z"]', '["x","y"]', '["y","x"]', '["x","z"]'


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
    "added_in_the_source": (Case(A, None, (None, None)), PATCH),
    "edited_in_the_target": (Case(A, B, (A, A)), EDITED),
    "removed_from_the_target": (Case(A, None, (A, A)), EDITED),
    "added_in_the_target": (Case(None, A, (None, None)), EDITED),
    "changed_on_both_sides": (Case(B, C, (A, A)), BOTH),
    "changed_on_both_sides_alike": (Case(B, B, (A, A)), SAME),
    "removed_from_the_source_and_edited_in_the_target": (Case(None, B, (A, A)), BOTH),
    # a person decided
    "source_decided": (Case(A, B, decision=Decision.SOURCE), PATCH),
    "source_decided_where_it_is_empty": (Case(None, B, decision=Decision.SOURCE), PATCH),
    "source_decided_after_an_edit": (Case(A, B, (A, A), decision=Decision.SOURCE), PATCH),
    "target_decided": (Case(A, B, decision=Decision.TARGET), KEPT),
    "target_decided_where_it_is_empty": (Case(A, None, decision=Decision.TARGET), KEPT),
    "target_decided_after_an_edit": (Case(A, B, (A, A), decision=Decision.TARGET), KEPT),
    "decided_and_equal": (Case(A, A, decision=Decision.SOURCE), SAME),
    "only_matched": (Case(A, B, decision=Decision.MATCH), CONFLICT),
    # the source's values count
    "overwritten": (Case(A, B, overwrite=True), PATCH),
    "overwritten_after_an_edit": (Case(A, B, (A, A), overwrite=True), PATCH),
    "overwritten_only_where_the_source_has_a_value": (Case(None, B, overwrite=True), KEPT),
    "overwritten_though_the_target_was_decided": (Case(A, B, decision=Decision.TARGET, overwrite=True), PATCH),
    # sets
    "set_in_another_order": (Case(XY, YX, is_set=True), KEPT),
    "set_with_more_in_the_source": (Case(XY, X, is_set=True), PATCH),
    "set_with_more_in_the_target": (Case(X, XY, is_set=True), KEPT),
    "sets_with_something_of_their_own": (Case(XY, XZ, is_set=True), CONFLICT),
    "sets_with_nothing_in_common": (Case(X, Y, is_set=True), CONFLICT),
    "set_only_in_the_source": (Case(X, None, is_set=True), PATCH),
    "set_only_in_the_target": (Case(None, X, is_set=True), KEPT),
    "set_with_more_in_the_source_and_edited_in_the_target": (Case(XY, X, (XY, XY), is_set=True), EDITED),
    "set_with_more_in_the_source_since": (Case(XY, X, (X, X), is_set=True), PATCH),
    "lists_that_are_no_sets": (Case(XY, X), CONFLICT),
}


def in_python(cases: Sequence[Case]) -> Iterator[FieldVerdict]:
    """The verdicts of the engine for other resources."""
    for case in cases:
        yield merge_field(
            case.source,
            case.target,
            written=case.written,
            decision=case.decision,
            overwrite=case.overwrite,
            is_set=case.is_set,
        )


def in_sql(cases: Sequence[Case]) -> Iterator[FieldVerdict]:
    """The verdicts of the engine for publications: each case is a record with one field. All cases have the same options."""
    [(overwrite, is_set)] = {(case.overwrite, case.is_set) for case in cases}
    with duckdb.connect() as database:
        database.execute("CREATE TABLE source (id BIGINT, field VARCHAR)")
        database.execute("CREATE TABLE target (id BIGINT, field VARCHAR)")
        database.execute("CREATE TABLE matched (source_id BIGINT, target_id BIGINT, matched_by VARCHAR)")
        database.execute("CREATE TABLE ambiguous (source_id BIGINT, candidates BIGINT[], reason VARCHAR)")
        database.execute("CREATE TABLE written (source_id BIGINT, target_id BIGINT, wanted JSON, held JSON)")
        database.execute("CREATE TABLE decisions (source_id BIGINT, decision VARCHAR, target_id BIGINT)")
        numbered = list(enumerate(cases))
        both = [(number, case.source, number, case.target) for number, case in numbered]
        database.executemany("INSERT INTO source VALUES (?, ?)", [row[:2] for row in both])
        database.executemany("INSERT INTO target VALUES (?, ?)", [row[2:] for row in both])
        database.executemany(
            "INSERT INTO matched VALUES (?, ?, 'id')", [(number, number) for number, _case in numbered]
        )
        written = [
            (number, number, *(json.dumps({"field": one}) for one in case.written))
            for number, case in numbered
            if case.written is not None
        ]
        decided = [(number, case.decision, number) for number, case in numbered if case.decision is not None]
        for table, marks, rows in (("written", "?, ?, ?, ?", written), ("decisions", "?, ?, ?", decided)):
            if rows:
                database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        merge_three_ways(database, [Field("field", is_set=is_set)], overwrite=overwrite)
        columns = "fields, same, conflicts, reason"
        for fields, same, conflicts, reason in database.execute(
            f"SELECT {columns} FROM merged ORDER BY source_id"
        ).fetchall():
            if conflicts:
                yield {reason: verdict for verdict, reason in CONFLICTS.items()}[reason]
            else:
                yield PATCH if fields else SAME if same else KEPT


ENGINES = {"python": in_python, "sql": in_sql}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_rule_of_a_three_way_merge(name: str, engine: str) -> None:
    case, expected = EXAMPLES[name]
    assert list(ENGINES[engine]([case])) == [expected]


@pytest.mark.parametrize("is_set", [False, True])
@pytest.mark.parametrize("overwrite", [False, True])
def test_both_engines_agree_on_every_combination(*, is_set: bool, overwrite: bool) -> None:
    values = (None, X, XY, Z) if is_set else (None, A, B)
    before = [None, *product(values, repeat=2)]
    decisions = (None, Decision.MATCH, Decision.SOURCE, Decision.TARGET)
    cases = [Case(*sides, overwrite=overwrite, is_set=is_set) for sides in product(values, values, before, decisions)]
    assert list(in_python(cases)) == list(in_sql(cases))


def test_a_guarded_field_is_never_added_to_a_record_that_exists() -> None:
    """The roles of a user who has an account in the target."""
    assert merge_field(A, None, guarded=True) == CONFLICT
    assert merge_field(A, None, guarded=True, decision=Decision.SOURCE) == PATCH
    assert merge_field(A, A, guarded=True) == SAME
    assert merge_field(None, A, guarded=True) == KEPT
