"""The codes by which people filter tables of issues: documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipelines.records.advice import CODES
from pipelines.report.pages import Report
from tests.migration.sample_plans import IN_ISSUES
from tests.report.library import lines_of


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


@pytest.mark.long
def test_every_line_has_a_code(real: Report, hostile: Report) -> None:
    """Also where the records mean harm; the codes are those that `--json` counts."""
    for report in (real, hostile):
        codes = [line["code"] for line in lines_of(report)]
        assert set(codes) <= set(CODES)
        assert set(codes[: report.to_do]) == set(report.counts)
        assert set(codes[report.to_do :]) <= {"repaired"}
