"""Every action, evidence and reason of a plan has its words."""

from __future__ import annotations

import re
from importlib.resources import files

from pipelines.migration.model.findings import Finding
from pipelines.migration.model.reasons import FILE, REASONS
from pipelines.migration.plan.field_merge import CONFLICTS
from pipelines.migration.plan.merges import MERGE_INTO_ANOTHER, MERGE_UNCLEAR

SQL = [(files("sql") / "migration" / name).read_text("utf-8") for name in ("match.sql", "match_by_keys.sql")]


def test_every_reason_that_a_plan_quotes_has_words() -> None:
    """What is quoted in the SQL of matching and has an underscore within is a reason; planning names some more."""
    quoted = set(re.findall(r"'([a-z]+(?:_[a-z]+)+)'", "".join(SQL)))
    assert {*quoted, *CONFLICTS.values(), MERGE_UNCLEAR, MERGE_INTO_ANOTHER} <= {*REASONS}


def test_a_problem_and_what_to_do_are_two_sentences() -> None:
    """A problem that comes from outside has no full stop."""
    for problem in ("its content was not fetched", "its content was not fetched."):
        finding = Finding(code=FILE, resource="publications", problem=problem, suggestion="Open the file.")
        assert finding.words.endswith("its content was not fetched. Open the file.")
