"""`migrate decide`: a file of decisions is taken over whole, or a message says why not and nothing is changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.errors import ConfigurationError
from pipelines.migration.decide.take_over import take_over
from pipelines.migration.model.plan import CONFLICTS, Plan
from pipelines.migration.plan.conflicts import RecordDecision, read_decisions
from pipelines.store.snapshots.snapshots import DataFolder
from tests.migration.decide.plans import differs, fits, page_of

BEFORE = (
    RecordDecision("publications", 2, "target", 1002, "Title 2"),
    RecordDecision("publications", 3, "skip", None, "Title 3"),
    RecordDecision("publications", 77, "skip", None, "Of before"),
)


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    return DataFolder(tmp_path / "data")


@pytest.fixture
def plan(data: DataFolder) -> Plan:
    """A plan with four conflicts, about two of which was decided, and a decision about another record."""
    rows = [differs(2, "ours", "theirs"), differs(3, "ours", "theirs"), fits(5, 51, 52), fits(6, 61, 62)]
    return page_of(data.path / "plans" / "old-to-new-20261121T203000Z", rows, BEFORE)


@pytest.fixture
def filled(plan: Plan, tmp_path: Path) -> Callable[[dict[int, str]], Path]:
    """Makes a copy of the plan's table with other decisions: id → decision."""

    def fill(decisions: dict[int, str]) -> Path:
        heading, *lines = plan.path(CONFLICTS).read_text("utf-8-sig").splitlines()
        cells = [line.split("\t") for line in lines]
        text = "\n".join("\t".join([*row[:-1], decisions.get(int(row[1]), row[-1])]) for row in cells)
        (tmp_path / "filled.tsv").write_text(f"{heading}\n{text}\n")
        return tmp_path / "filled.tsv"

    return fill


def test_it_says_what_was_decided_and_what_is_left(
    data: DataFolder, plan: Plan, filled: Callable[[dict[int, str]], Path]
) -> None:
    taken = take_over(data, plan, filled({2: "source", 3: "", 5: "match 52", 77: "skip"}))
    assert (taken.plan, taken.left, taken.withdrawn) == (plan.name, 2, 1)
    assert taken.decisions == {"source": 1, "match": 1, "skip": 1}
    decisions = {decision.source_id: decision.written for decision in read_decisions(plan.path(CONFLICTS)).values()}
    assert decisions == {2: "source 1002", 5: "match 52", 77: "skip"}


@pytest.mark.long
def test_the_table_stays_whole_whatever_a_spreadsheet_made_of_it(data: DataFolder, plan: Plan, tmp_path: Path) -> None:
    """Only the decisions are taken: the other cells, and lines that somebody removed, are those of the plan."""
    before = plan.path(CONFLICTS).read_text("utf-8").splitlines()
    path = tmp_path / "few.csv"
    path.write_bytes("resource;source_id;title;decision\r\npublications;5;?;create\r\n".encode("cp1252"))
    taken = take_over(data, plan, path)
    assert (taken.withdrawn, taken.left) == (3, 3)
    after = plan.path(CONFLICTS).read_text("utf-8").splitlines()
    assert [line.rpartition("\t")[0] for line in after] == [line.rpartition("\t")[0] for line in before[:5]]
    assert [line.rpartition("\t")[2] for line in after[1:]] == ["", "", "create", ""]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("publications\t2\tTitle 2\t\t\t\tcrate", "line 2: 'crate' is no decision"),
        ("publications\t4\tTitle 4\t\t\t\tskip", "decides about 1 record about which plan .* publications 4"),
        ("users\t2\t\t\t\t\tskip", "does not ask: users 2. Nothing was taken over"),
        ("publications\t2\tMaps\t\t\t\tskip\npublications\t3\tAtlas\t\t\t\tskip", "other titles .* in 2 of 2 lines"),
    ],
)
def test_a_file_that_does_not_fit_changes_nothing(
    data: DataFolder, plan: Plan, tmp_path: Path, text: str, message: str
) -> None:
    """Bad decisions, unknown records, the file of another plan."""
    before = plan.path(CONFLICTS).read_bytes()
    path = tmp_path / "other.tsv"
    path.write_text(f"resource\tsource_id\ttitle\tproblem\tcandidates\tdiffering\tdecision\n{text}\n")
    with pytest.raises(ConfigurationError, match=re.compile(message, re.DOTALL)):
        take_over(data, plan, path)
    assert plan.path(CONFLICTS).read_bytes() == before


def test_a_plan_that_is_not_the_newest_is_refused(
    data: DataFolder, plan: Plan, filled: Callable[[dict[int, str]], Path]
) -> None:
    """The next plan would not read its decisions."""
    later = "2026-11-22T20:30:00+00:00"
    page_of(data.path / "plans" / "old-to-new-20261122T203000Z", [differs(2, "a", "b")], created_at=later)
    with pytest.raises(ConfigurationError, match=r"is not the newest .* old-to-new-20261122T203000Z is"):
        take_over(data, plan, filled({2: "skip"}))
