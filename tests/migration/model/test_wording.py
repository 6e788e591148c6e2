"""Every action, evidence and reason of a plan has its words."""

from __future__ import annotations

import re
from importlib.resources import files

from pipelines.migration.model.actions import Action
from pipelines.migration.model.findings import Finding
from pipelines.migration.model.reasons import FILE, REASONS, reason_of
from pipelines.migration.model.wording import ACTIONS, EVIDENCE
from pipelines.migration.plan.field_merge import CONFLICTS
from pipelines.migration.plan.merges import MERGE_INTO_ANOTHER, MERGE_UNCLEAR

SQL = [(files("sql") / "migration" / name).read_text("utf-8") for name in ("match.sql", "match_by_keys.sql")]


def test_every_reason_that_a_plan_quotes_has_words() -> None:
    """What is quoted in the SQL of matching and has an underscore within is a reason; planning names some more."""
    quoted = set(re.findall(r"'([a-z]+(?:_[a-z]+)+)'", "".join(SQL)))
    assert {*quoted, *CONFLICTS.values(), MERGE_UNCLEAR, MERGE_INTO_ANOTHER} <= {*REASONS}


def test_every_action_and_every_evidence_has_words() -> None:
    assert set(ACTIONS) == {
        Action.CREATE,
        Action.PATCH,
        Action.MERGE,
        Action.UNCHANGED,
        Action.CONFLICT,
        Action.SKIPPED,
        Action.QUARANTINED,
    }
    assert {"decision", "journal", "id", "identifier", "content", "fingerprint", "name"} == set(EVIDENCE)


def test_several_records_of_one_name_may_be_merged_where_the_service_merges() -> None:
    assert "merge" in reason_of("several_targets", "authorities").suggestion
    assert "merge" not in reason_of("several_targets", "users").suggestion


def test_a_problem_and_what_to_do_are_two_sentences() -> None:
    """A problem that comes from outside has no full stop."""
    for problem in ("its content was not fetched", "its content was not fetched."):
        finding = Finding(code=FILE, resource="publications", problem=problem, suggestion="Open the file.")
        assert finding.words.endswith("its content was not fetched. Open the file.")
