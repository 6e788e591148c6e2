"""The reports on a plan: page, issues.tsv, and the summary for Dagster."""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import load_workbook

from pipelines.migration.model.actions import Action
from pipelines.migration.model.formatting import display_both, display_text
from pipelines.migration.model.plan import CONFLICTS, HTML, ISSUES, WORKBOOK, Plan
from pipelines.migration.model.wording import headline
from pipelines.migration.plan.conflicts import write_conflicts
from pipelines.migration.report.pages import write_pages
from tests.interop.browser import browser, running_browser
from tests.migration.examples import NOW, example, hostile_rows, usual_rows
from tests.migration.sample_plans import IN_ISSUES, facts, row
from tests.report.test_hostile import FORMULA, _Tags

__all__ = ["browser", "running_browser"]  # fixtures

LOCATIONS = "3 locations do not exist in the target: a person has to make them."


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder = tmp_path_factory.mktemp("usual") / "plan"
    return with_pages(example(folder, usual_rows(), mails=1, unfit=2, decisions=1, notes=[LOCATIONS]))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return with_pages(example(tmp_path_factory.mktemp("hostile") / "plan", hostile_rows()))


def with_pages(plan: Plan, now: datetime = NOW) -> Plan:
    write_conflicts(plan, {})
    write_pages(plan, now=now)
    return plan


def text_of(plan: Plan, name: str) -> str:
    return plan.path(name).read_text("utf-8")


def lines_of(plan: Plan) -> list[dict[str, str]]:
    with plan.path(ISSUES).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, dialect="excel-tab", strict=True))


@pytest.mark.parametrize(
    ("now", "end"),
    [
        (datetime(2026, 12, 31, 1, 0, tzinfo=UTC), "done on 2026-12-31 02:00 UTC; that is the last day of version 2."),
        (datetime(2026, 12, 31, 23, 30, tzinfo=UTC), "done on 2027-01-01 00:30 UTC; 1 day after version 2 ends."),
        (
            datetime(2026, 12, 29, 23, 30, tzinfo=timezone(timedelta(hours=1), "CET")),
            "done on 2026-12-30 00:30 CET; 1 day before version 2 ends.",
        ),
    ],
)
def test_the_margin_counts_from_the_end_of_the_work_in_the_zone_of_the_reader(now: datetime, end: str) -> None:
    display_text = headline(facts(requests=3600, counts={"publications": {Action.CREATE: 1}}), now)
    assert display_text == ["1 publication will be created.", f"3,600 requests, 1 h 0 min at 60 a minute: {end}"]


def test_the_page_lists_replaced_values_unsent_values_and_conflicts(usual: Plan) -> None:
    """It has the effects on people and on existing values, unsent values, conflicts and notes."""
    text = text_of(usual, HTML)
    plain = " ".join(re.sub(r"<style>.*?</style>|<[^>]*>", " ", text, flags=re.DOTALL).split())
    for words in (
        *headline(usual.facts, NOW),
        LOCATIONS,
        "In 1 record a value of the target is replaced.",
        "publication 3 A history of printing → The history of printing",
        "publication 6 Title 6 #60 or #61",
        "«DOI 10.1000/182» | «DOI 10.1000/183»",
        "3 records wait for a decision",
        "authors[].orcid 1",
        "2 records of the source without a number",
    ):
        assert words in plain, words
    assert "Cora" not in text
    assert "Lars" not in text


def test_every_unsent_value_is_a_line_of_the_issues(usual: Plan) -> None:
    """Unsent values, missing files, quarantined records, conflicts; lines about which nothing can be done come last."""
    lines = lines_of(usual)
    assert [(line["record"], line["field"], line["value"]) for line in lines] == [
        ("1", "cover", "cover.jpg"),
        ("2", "ISBN", "9780306406158"),
        ("6", "", "#60 or #61"),
        ("7", "identifiers", "identifiers: «DOI 10.1000/182» | «DOI 10.1000/183»"),
        ("9", "", ""),
        ("9", "title", "7"),
        ("user 2", "", "#3 or #4"),
        ("1", "import_state", "done"),
        ("2", "authors[3].orcid", "0000"),
        ("2 records", "id", ""),
    ]
    assert lines[0]["problem"] == "404 Not Found"
    assert "unless the snapshot has it, packed" in lines[0]["suggestion"], "no backup fetches it again"
    assert "check digit" in lines[1]["problem"]
    assert all(line["problem"] and line["suggestion"] for line in lines)
    assert [line["code"] for line in lines] == [
        "file",
        "check_digit",
        "several_targets",
        "fields_differ",
        "nothing_to_send",
        "other_form",
        "several_targets",
        "deprecated",
        "unknown_part",
        "no_id",
    ]
    assert {line["code"] for line in lines} <= IN_ISSUES | {"check_digit"}
    assert [line["title"] for line in lines if line["record"] == "user 2"] == [""], "a title may name a person"


@pytest.mark.long
def test_what_holds_for_every_record_is_one_line(tmp_path: Path) -> None:
    """So is what nobody has to do anything about; what a person has to correct stays a line for each record."""
    unsent = [
        {"import_state": "done", "shelf": number, "wos": f"WOS:{number}", "isbn": "9780306406158"}
        for number in range(3)
    ]
    unsent[0]["once"] = "kept"
    rows = [row(number, Action.CREATE, unsent=values) for number, values in enumerate(unsent, start=1)]
    source = msgspec.structs.replace(
        facts().source, records={"publications": 3}, record_url="https://library.example.org/r/{id}"
    )
    plan = with_pages(example(tmp_path / "plan", rows, source=source))
    lines = [tuple(line[name] for name in ("record", "field", "value", "code", "link")) for line in lines_of(plan)]
    assert lines == [
        *(
            (str(number), "ISBN", "9780306406158", "check_digit", f"https://library.example.org/r/{number}")
            for number in (1, 2, 3)
        ),
        ("all 3 publications", "wos", "for example WOS:0", "unknown_identifier", ""),
        ("all 3 publications", "import_state", "done", "deprecated", ""),
        ("all 3 publications", "shelf", "for example 0", "not_shown", ""),
        ("1", "once", "kept", "not_shown", "https://library.example.org/r/1"),
    ]
    sheet = load_workbook(plan.path(WORKBOOK)).active
    assert [[str(cell or "") for cell in line] for line in sheet.iter_rows(min_row=2, values_only=True)] == [
        [*line.values()] for line in lines_of(plan)
    ]


def test_a_table_of_issues_without_a_line_lists_nothing(tmp_path: Path) -> None:
    """Of a plan that leaves whole resources out."""
    source = msgspec.structs.replace(facts().source, records={"publications": 1})
    plan = with_pages(example(tmp_path / "plan", [row(1, Action.CREATE)], left_out={"hard_copies": 1}, source=source))
    text = text_of(plan, HTML)
    assert "1 hard copy" in text
    assert "keeps all that it has" in text
    assert "issues.xlsx" not in text


def test_time_that_runs_out_is_an_alarm(tmp_path: Path) -> None:
    for number, (day, words) in enumerate([(20, None), (28, "Little time is left"), (31, "too late")]):
        plan = example(tmp_path / str(number), usual_rows())
        page = text_of(with_pages(plan, datetime(2026, 12, day, 23, 0, tzinfo=UTC)), HTML)
        assert ('class="alarm"' in page) == (words is not None)
        assert words is None or words in page


def test_nothing_hostile_gets_out(hostile: Plan, usual: Plan) -> None:
    """No secret, no person, no control character, no HTML of a record, no split cell, no formula (I10, I13)."""
    for name in (HTML, ISSUES, CONFLICTS):
        text = text_of(hostile, name)
        for secret in ("0123456789abcdef", "Cora", "librarian@"):
            assert secret not in text, name
        assert re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text) is None, name
    harmless, page = _Tags(text_of(usual, HTML)), _Tags(text_of(hostile, HTML))
    assert page.tags <= harmless.tags | {"br"}
    assert page.attributes <= harmless.attributes
    assert not page.tags & {"img", "iframe", "link", "object", "form"}
    assert text_of(hostile, HTML).count("<script") == text_of(usual, HTML).count("<script") == 3
    for name, columns in ((ISSUES, 8), (CONFLICTS, 7)):
        with hostile.path(name).open(encoding="utf-8-sig", newline="") as file:
            table = list(csv.reader(file, dialect="excel-tab", strict=True))
        assert len(table) > 20
        assert {len(line) for line in table} == {columns}
        assert not any(FORMULA.match(cell) for line in table for cell in line)


@given(st.text(max_size=300), st.text(max_size=300), st.integers(10, 90))
def test_the_first_difference_of_two_values_is_displayed(source: str, target: str, most: int) -> None:
    """At any length; two displayed values are equal only if the values are, or their difference must not be displayed."""
    source_shown, target_shown = display_both("title", source, target, most)
    assert max(len(source_shown), len(target_shown)) <= most + 2
    assert source_shown != target_shown or display_text("title", source) == display_text("title", target)


def test_values_that_look_the_same_are_displayed_exactly() -> None:
    """Two values that differ in a blank at the end, a line break, or the type of an author."""
    assert display_both("title", "A title ", "A title") == ('"A␣title␣"', '"A␣title"')
    assert display_both("abstract", "a\nb", "a b") == ('"a\\nb"', '"a␣b"')
    assert display_both("title", "\u00dcber", "U\u0308ber") == ('"\u00dcber"', '"U\\u0308ber"')
    person, firm = ([{"name": "Doe", "type": kind}] for kind in ("person", "corporate"))
    assert display_both("authors", person, firm) == (
        '[{"name":"Doe","type":"person"}]',
        '[{"name":"Doe","type":"corporate"}]',
    )


@pytest.mark.long
def test_what_is_added_to_a_list_replaces_nothing(tmp_path: Path) -> None:
    """An emptied field is replaced; a list with more entries is not."""
    maps, printing = {"name": "Maps"}, {"name": "Printing"}
    changes = [([maps, printing], [printing]), ([maps], [printing]), (None, [maps]), ([maps], None), ([maps], [])]
    rows = [
        row(number, Action.PATCH, payload={"categories": payload}, before={"categories": before})
        for number, (payload, before) in enumerate(changes)
    ]
    summary = write_pages(example(tmp_path / "plan", rows), now=NOW)
    assert [(patch.records, patch.replaced) for patch in summary.patched] == [(5, 2)]
    assert [change.source_id for change in summary.patched[0].examples] == [1, 2]
    assert summary.replaced == 2
