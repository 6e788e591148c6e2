"""conflicts.tsv: what it asks a person, and how it is read after a spreadsheet saved it."""

from __future__ import annotations

import csv
import json
import re
from io import StringIO
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import ConfigurationError
from pipelines.inventory import RESOURCES
from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import CONFLICTS, FACTS, Plan, PlanRow
from pipelines.migration.plan.conflicts import RecordDecision, headings, newest_table, read_decisions, write_conflicts
from pipelines.store.snapshots.snapshots import DataFolder
from tests.migration.sample_plans import NEW, OLD, facts, plan_of, row
from tests.report.library import HOSTILE

UNCLEAR = row(1, Action.CONFLICT, reason="several_targets", candidates=[12, 34])
DIFFERS = row(
    2,
    Action.CONFLICT,
    target_id=56,
    matched_by="identifier",
    reason="fields_differ",
    differing={
        "title": ['"The history of printing"', '"A history of printing"'],
        "identifiers": ['[["doi","10.1000/182"],["isbn","9780306406157"]]', None],
        "abstract": [f'"{"long " * 100}ours"', f'"{"long " * 100}theirs"'],
    },
)


def file_of(folder: Path, rows: list[PlanRow], *decided: RecordDecision) -> Path:
    plan = plan_of(folder / f"plan-{len([*folder.iterdir()])}", rows)
    write_conflicts(plan, {(decision.resource, decision.source_id): decision for decision in decided})
    return plan.path(CONFLICTS)


def lines_of(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file, dialect="excel-tab", strict=True))


def decide(path: Path, *words: str) -> Path:
    """Write into the last cells, from the first line on, like an editor."""
    heading, *lines = lines_of(path)
    text = StringIO(newline="")
    answered = [[*line[:-1], word] for line, word in zip(lines, words, strict=True)]
    csv.writer(text, dialect="excel-tab").writerows([heading, *answered])
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    return path


def decided(*decisions: RecordDecision) -> list[tuple[int, str, int | None]]:
    return [(decision.source_id, decision.decision, decision.target_id) for decision in decisions]


def test_a_line_has_the_problem_the_differences_and_a_place_for_the_decision(tmp_path: Path) -> None:
    """One line for each conflict, the same every time. Two long values are cut at their first difference."""
    path = file_of(tmp_path, [UNCLEAR, row(7, Action.CREATE), DIFFERS])
    heading, unclear, differs = lines_of(path)
    assert heading == list(headings(facts()))
    assert heading[-2] == "differing: «old» | «new»"
    assert "source (old counts), target (new counts)" in heading[-1]
    assert unclear[:3] + unclear[4:] == ["publications", "1", "Title 1", "#12 or #34", "", ""]
    assert "match" in unclear[3]
    assert differs[4] == "#56"
    title, identifiers, abstract = differs[5].split(" · ")
    assert title == "title: «The history of printing» | «A history of printing»"
    assert identifiers == "identifiers: «DOI 10.1000/182; ISBN 9780306406157» | «(nothing)»"
    assert re.fullmatch(r"abstract: «….*long ours» \| «….*long theirs»", abstract)
    before = path.read_bytes()
    assert file_of(tmp_path, [UNCLEAR, row(7, Action.CREATE), DIFFERS]).read_bytes() == before


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("create", ("create", None)),
        (" Skip. ", ("skip", None)),
        ("match #12", ("match", 12)),
        ("MATCH: 12", ("match", 12)),
        ("match12", ("match", 12)),
        ("match\u00a0１２", ("match", 12)),
        ("match 0012", ("match", "0012")),
        ("Source 34", ("source", 34)),
        ("target = 34", ("target", 34)),
    ],
)
def test_a_decision_is_understood_however_it_is_written(
    tmp_path: Path, written: str, meant: tuple[str, int | str]
) -> None:
    assert decided(*read_decisions(decide(file_of(tmp_path, [UNCLEAR]), written)).values()) == [(1, *meant)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("crate", ""), r"line 2: 'crate' is no decision"),
        (("match 1 or 2", ""), r"line 2: 'match 1 or 2' is no decision"),
        (("match", ""), r"line 2: 'match' names no record of the target"),
        (("create 5", ""), r"line 2: 'create 5': create takes no number"),
        (("match 56", "source"), r"line 3: 'source 56' for publications 2, but line 2 takes 56 of the target"),
        (("?", "=1+1"), r"line 2: '\?' is no decision\n  line 3: '=1\+1' is no decision"),
    ],
)
def test_a_line_that_cannot_be_understood_is_an_error_with_its_number(
    tmp_path: Path, words: tuple[str, str], message: str
) -> None:
    """The message names the file, every line, its text, and what may be written. No decision is used."""
    path = decide(file_of(tmp_path, [UNCLEAR, DIFFERS]), *words)
    with pytest.raises(ConfigurationError, match=message) as caught:
        read_decisions(path)
    assert str(path) in str(caught.value)
    assert "match 123" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no line with the headings"),
        ("publications\t1\tskip\n", "no line with the headings"),
        ("resource\tsource_id\tdecision\npublications\t1,000\tskip\n", "'1,000' in column source_id is not the id"),
        ("resource\tsource_id\tdecision\nbooks\t1\tskip\n", "'books' in column resource is none of publications, "),
        ("resource\tsource_id\tdecision\nusers\t1\tskip\nusers\t1\tcreate\n", "but line 2 says 'skip'"),
        ('resource\tsource_id\tdecision\nusers\t1\t"skip\nusers\t2\tskip\n', "cannot be read as a table"),
    ],
)
def test_a_table_that_lost_its_form_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / CONFLICTS
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        read_decisions(path)


numbers = st.integers(0, 2**63 - 1)
titles = st.text() | st.sampled_from(HOSTILE)
some_decisions = st.lists(
    st.builds(
        RecordDecision, st.sampled_from(RESOURCES), numbers, st.sampled_from(["create", "skip"]), st.none(), titles
    )
    | st.builds(
        RecordDecision,
        st.sampled_from(RESOURCES),
        numbers,
        st.sampled_from(["match", "source", "target"]),
        numbers,
        titles,
    ),
    max_size=8,
    unique_by=(
        lambda decision: decision[:2],
        lambda decision: (decision[0], decision[3]) if decision[3] is not None else decision[:2],
    ),
)


class Saved(NamedTuple):
    """How a spreadsheet saves a table."""

    encoding: str
    separator: str
    end: str
    quoting: Literal[0, 1]
    capitals: bool


ways_to_save = st.builds(
    Saved,
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"]),
    st.sampled_from("\t;,|"),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.booleans(),
)


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """A plan with a conflict."""
    return plan_of(tmp_path_factory.mktemp("asking") / "plan", [UNCLEAR])


@given(some_decisions, ways_to_save)
def test_decisions_are_the_same_after_a_spreadsheet_saved_the_file(
    asking: Plan, decisions: list[RecordDecision], saved: Saved
) -> None:
    """With any titles: another encoding, separator or line end, quotes, capitals, a line above, empty lines below (I13)."""
    path = asking.path(CONFLICTS)
    write_conflicts(asking, {decision[:2]: decision for decision in decisions})
    heading, *lines = lines_of(path)
    text = StringIO(newline="")
    writer = csv.writer(text, delimiter=saved.separator, lineterminator=saved.end, quoting=saved.quoting)
    writer.writerows([["Our decisions"], heading])
    writer.writerows([*line[:-1], f" {line[-1].upper()} "] if saved.capitals else line for line in lines)
    writer.writerows([[], [""] * len(heading), []])
    path.write_bytes(text.getvalue().encode(saved.encoding, errors="replace"))
    assert sorted(decision[:4] for decision in read_decisions(path).values()) == sorted(
        decision[:4] for decision in decisions
    )


def test_the_newest_plan_of_the_two_libraries_counts(tmp_path: Path) -> None:
    """By address, not by what the tenants are called; a file that somebody removed gives way to the one before.

    Decisions outlive an update: also a plan that another version made, and that this one cannot apply, has people's work in it.
    """
    data = DataFolder(tmp_path)
    first, second, third = (
        RecordDecision("publications", number, "skip", None, f"Title {number}") for number in (1, 2, 3)
    )
    for number, decision in enumerate((first, second, third)):
        plan = plan_of(tmp_path / "plans" / f"plan-{number}", created_at=f"2026-11-2{number}T00:00:00+00:00")
        write_conflicts(plan, {decision[:2]: decision})
    stored = json.loads(plan.path(FACTS).read_text())
    plan.path(FACTS).write_text(json.dumps(stored | {"format": 99, "counts": None}))
    newest = newest_table(data, OLD.upper(), NEW)
    assert newest is not None
    table = newest[1]
    assert (newest[0].created_at[:10], [*read_decisions(table).values()]) == ("2026-11-22", [third])
    assert newest_table(data, NEW, OLD) is None
    table.unlink()
    newest = newest_table(data, OLD, NEW)
    assert newest is not None
    assert [*read_decisions(newest[1]).values()] == [second]
