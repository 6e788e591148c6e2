"""The codes by which people filter tables of issues: documented."""

from __future__ import annotations

import re
from pathlib import Path

from pipelines.records.advice import CODES
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
