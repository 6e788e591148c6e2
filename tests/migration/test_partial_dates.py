"""Dates that are only a year or a month: a plan leaves them out, or sends their first day with a word (`--first-days`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import ISSUES, Plan
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from tests.migration.library_pair import LibraryPair
from tests.migration.test_additional_fields import reshape
from tests.store.snapshot_factory import STARTED_AT, make_snapshot

DATES = {1: "2021", 2: "November 2018", 3: "2020-02-29", 4: "c. 1900", 5: None}
SENT = {1: "2021-01-01", 2: "2018-11-01", 3: "2020-02-29", 4: None, 5: None}


def snapshot_of(pair: LibraryPair, dates: Mapping[int, str | None], days: int = 1) -> Snapshot:
    """A snapshot of version 2 with a publication for each date; `days` later than others."""
    payloads = [
        json.dumps({"id": number, "title": f"Tides {number}", "doi": f"10.1000/{number}", "published_on": date})
        for number, date in dates.items()
    ]
    data = DataFolder(pair.config.parent / "library-data")
    return make_snapshot(data, payloads, now=STARTED_AT + timedelta(days=days))


def dates_in(pair: LibraryPair) -> dict[int, Any]:
    """The date of each publication of the target, by the number in its title."""
    return {int(record["title"].split()[1]): record["published_on"] for record in pair.publications()}


def issues_of(plan: Plan) -> dict[int, list[str]]:
    """Record → field, value and problem in issues.tsv; without the mark that keeps a spreadsheet from reading a number."""
    lines = [line.split("\t") for line in plan.path(ISSUES).read_text(encoding="utf-8").splitlines()[1:]]
    return {int(line[0]): [line[2], line[3], line[4]] for line in lines}


@pytest.mark.long
def test_they_are_left_out_until_a_later_plan_fills_them(pair: LibraryPair) -> None:
    """The plan counts them, and names the option, which may come later; a day of that year that librarians have entered since is kept."""
    snapshot = snapshot_of(pair, DATES)
    plan = pair.plan(snapshot)
    assert plan.facts.not_moved.by_field == {"published_on": 3}
    assert {record: issue[:2] for record, issue in issues_of(plan).items()} == {
        1: ["date", "2021"],
        2: ["date", "November 2018"],
        4: ["date", "c. 1900"],
    }
    assert "--first-days" in plan.path(ISSUES).read_text(encoding="utf-8")
    assert pair.apply(plan).complete
    assert dates_in(pair) == {**dict.fromkeys(DATES), 3: "2020-02-29"}
    number = next(record["id"] for record in pair.publications() if record["title"] == "Tides 2")
    pair.call("PATCH", f"publications/{number}", {"published_on": "2018-11-30"})
    plan = pair.plan(snapshot, first_days=True)
    assert {row.source_id: row.payload for row in plan.rows(Action.PATCH)} == {1: {"published_on": "2021-01-01"}}
    assert (plan.facts.count(Action.CONFLICT), plan.facts.not_moved.by_field["published_on (precision)"]) == (0, 2)
    assert any(note.startswith("The date of 2 publications is only a year or a month") for note in plan.facts.notes)
    assert issues_of(plan)[1][:2] == ["date (precision)", "2021"]
    assert "first day, 2021-01-01," in issues_of(plan)[1][2]
    assert pair.apply(plan).complete
    assert dates_in(pair) == {**SENT, 2: "2018-11-30"}
    assert pair.verify(plan).equal
    assert pair.plan(snapshot).facts.empty
    pair.undo(plan, really=True)
    assert dates_in(pair) == {**SENT, 1: None, 2: "2018-11-30"}


def test_a_later_plan_takes_the_first_days_out_only_where_somebody_says_so(pair: LibraryPair) -> None:
    """Without the option it does as the plan before."""
    snapshot = snapshot_of(pair, {1: "2021"})
    assert pair.apply(pair.plan(snapshot, first_days=True)).complete
    next_plan = pair.plan(snapshot)
    assert (next_plan.facts.empty, next_plan.facts.first_days) == (True, True)
    plan = pair.plan(snapshot, first_days=False)
    assert [(row.payload, row.before) for row in plan.rows(Action.PATCH)] == [
        ({"published_on": None}, {"published_on": "2021-01-01"})
    ]
    assert not pair.plan(snapshot).facts.first_days


@pytest.mark.long
def test_a_record_without_what_the_target_demands_is_not_promised(pair: LibraryPair) -> None:
    """The plan says which publications cannot be created, before the service refuses them."""
    reshape(pair, pair.target, {"published_on": {"schema": {"type": "string"}, "required": True}})
    snapshot = snapshot_of(pair, DATES)
    plan = pair.plan(snapshot)
    reasons = {row.source_id: row.reason for row in plan.rows(Action.QUARANTINED)}
    assert reasons == {**dict.fromkeys((1, 2, 4), "required_not_taken"), 5: "required_missing"}
    assert pair.apply(plan).created == 1
    plan = pair.plan(snapshot, first_days=True)
    assert pair.apply(plan).created == 2
    assert dates_in(pair) == {number: date for number, date in SENT.items() if date}


@pytest.mark.long
def test_what_the_target_demands_and_may_be_empty_is_sent_so(pair: LibraryPair) -> None:
    """Null, or an empty list."""
    reshape(pair, pair.target, {name: {"from": name, "required": True} for name in ("published_on", "authors")})
    plan = pair.plan(snapshot_of(pair, DATES))
    assert pair.apply(plan).complete
    assert dates_in(pair) == {**dict.fromkeys(DATES), 3: "2020-02-29"}
    assert pair.verify(plan).equal
