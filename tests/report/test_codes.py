"""The codes by which people filter tables of issues: documented, and never renamed."""

from __future__ import annotations

import re
from pathlib import Path

from pipelines.migration.model.reasons import IN_ISSUES
from pipelines.records.advice import CODES
from pipelines.report.pages import Report
from tests.report.library import lines_of

EVER = {
    "check_digit",
    "length",
    "prefix",
    "zeros_unproved",
    "placeholder",
    "music_number",
    "digits_lost",
    "ambiguous",
    "blank_inside",
    "dash_inside",
    "character",
    "fragment",
    "suffix",
    "date",
    "serial",
    "archive_unknown",
    "form",
    "text",
    "nothing",
    "blank",
    "too_long",
    "unknown_type",
    "type_missing",
    "file",
    "shared",
    "same_title",
    "no_title",
    "no_date",
    "repaired",
    "other",
}
"""Every code of a report that was ever published. Add new ones; change none."""

EVER_IN_PLANS = {
    "several_targets",
    "twins",
    "merge_unclear",
    "merge_into_another",
    "no_number",
    "several_sources",
    "identifiers_disagree",
    "deleted_in_target",
    "decided_is_missing",
    "edited_in_target",
    "edited_in_both",
    "fields_differ",
    "nothing_to_send",
    "location_missing",
    "at_missing_location",
    "reference_missing",
    "task_completed",
    "required_missing",
    "required_not_taken",
    "deprecated",
    "filled_by_service",
    "link",
    "no_category",
    "no_day",
    "part_of_date",
    "first_day",
    "no_organization",
    "no_record",
    "no_text",
    "no_user",
    "not_a_choice",
    "not_described",
    "not_sendable",
    "not_shown",
    "other_form",
    "other_type",
    "read_only",
    "signed",
    "unknown_identifier",
    "unknown_part",
    "unknown_reference",
}
"""The same for plans, which have those of reports, too."""


def test_no_code_was_renamed() -> None:
    assert set(CODES) == EVER
    assert IN_ISSUES - EVER == EVER_IN_PLANS


def test_every_code_is_documented() -> None:
    """And no other: those of rules in the data dictionary, all others beside the reports."""
    docs = Path(__file__).parents[2] / "docs"
    tables, reports = ((docs / name).read_text("utf-8") for name in ("tables.md", "reports.md"))
    of_rules = set(re.findall(r"^\| `(\w+)` \| \*\*", tables.partition("## Rules")[2], re.MULTILINE))
    codes = reports.partition("### Codes")[2].partition("\n## ")[0]
    others = {
        code for cell in re.findall(r"^\| (`.*?) \|", codes, re.MULTILINE) for code in re.findall(r"`(\w+)`", cell)
    }
    assert of_rules | others == EVER | EVER_IN_PLANS
    assert not of_rules & others


def test_every_line_has_a_code(real: Report, hostile: Report) -> None:
    """Also where the records mean harm; the codes are those that `--json` counts."""
    for report in (real, hostile):
        codes = [line["code"] for line in lines_of(report)]
        assert set(codes) <= EVER
        assert set(codes[: report.to_do]) == set(report.counts)
        assert set(codes[report.to_do :]) <= {"repaired"}
