"""Every action, evidence and reason of a plan has its words."""

from __future__ import annotations

import re
from importlib.resources import files

from pipelines.migration.model.reasons import REASONS
from pipelines.migration.plan.field_merge import CONFLICTS
from pipelines.migration.plan.merges import MERGE_INTO_ANOTHER, MERGE_UNCLEAR

SQL = [(files("sql") / "migration" / name).read_text("utf-8") for name in ("match.sql", "match_by_keys.sql")]


def test_every_reason_that_a_plan_quotes_has_words() -> None:
    """What is quoted in the SQL of matching and has an underscore within is a reason; planning names some more."""
    quoted = set(re.findall(r"'([a-z]+(?:_[a-z]+)+)'", "".join(SQL)))
    assert {*quoted, *CONFLICTS.values(), MERGE_UNCLEAR, MERGE_INTO_ANOTHER} <= {*REASONS}
