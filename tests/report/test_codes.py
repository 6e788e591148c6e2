"""The codes by which people filter tables of issues: documented."""

from __future__ import annotations

import re
from pathlib import Path

from pipelines.migration.model.reasons import REASONS
from pipelines.records.advice import CODES
from pipelines.records.left_out import LeftOut
from tests.migration.sample_plans import IN_ISSUES


def test_every_code_is_documented() -> None:
    """And no other: those of rules in the data dictionary, all others beside the reports."""
    docs = Path(__file__).parents[2] / "docs"
    tables, reports = ((docs / name).read_text("utf-8") for name in ("tables.md", "reports.md"))
    of_rules = set(re.findall(r"^\| `(\w+)` \| \*\*", tables.partition("## Rules")[2], re.MULTILINE))
    codes = reports.partition("### Codes")[2].partition("\n## ")[0]
    others = {
        code for cell in re.findall(r"^\| (`.*?) \|", codes, re.MULTILINE) for code in re.findall(r"`(\w+)`", cell)
    }
    assert of_rules | others == {*CODES} | IN_ISSUES
    assert not of_rules & others


def test_everything_that_is_left_out_has_a_reason_of_its_own() -> None:
    """A rule of identifiers of the same code would lend it its sentence."""
    assert {*LeftOut} <= REASONS.keys()
    assert {*LeftOut}.isdisjoint(CODES)
