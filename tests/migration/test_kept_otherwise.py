"""A service that keeps values otherwise than they are sent: not patched again, and counted and named by every later plan."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pytest

from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import CONFLICTS, HTML, Plan
from pipelines.migration.model.reasons import ReasonKind
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from tests.migration.chaos import RoughWay
from tests.migration.library_pair import LibraryPair
from tests.migration.report.test_pages import lines_of
from tests.service.scripted import Answer, Received, forwarded
from tests.store.snapshot_factory import STARTED_AT, make_snapshot

MOST = 255
"""Characters of a text that the service keeps."""

_AS_THEY_ARE = frozenset(
    {"id", "storage", "email", "content_type", "mime_type", "publishable_type", "type", "value", "filename"}
)

PAYLOADS: dict[int, dict[str, Any]] = {
    1: {"title": "Tides " * 60, "doi": "10.1000/1"},
    2: {"title": "Seas \N{WATER WAVE} of the north", "doi": "10.1000/2"},
    3: {"title": "A  title   with blanks", "abstract": "<p>One</p>", "doi": "10.1000/3"},
    4: {"title": "Plain", "abstract": "Nothing is changed here", "doi": "10.1000/4"},
    5: {"title": "Authors", "authors": [{"name": "Doe,  Jane", "type": "person"}], "doi": "10.1000/5"},
}
KEPT = {1: {"title"}, 2: {"title"}, 3: {"title", "abstract"}, 5: {"authors"}}


def kept(value: Any, most: int, key: str = "") -> Any:
    """A value as such a service keeps it: cut, without emoji and HTML, with single blanks."""
    if isinstance(value, dict):
        return {name: kept(entry, most, name) for name, entry in value.items()}
    if isinstance(value, list):
        return [kept(entry, most, key) for entry in value]
    if not isinstance(value, str) or key in _AS_THEY_ARE:
        return value
    text = re.sub(r"<[^>]*>|[\U00010000-\U0010ffff]", "", value)
    return " ".join(text.split())[:most]


class ChangingWay(RoughWay):
    """Forwards requests without faults, and changes the texts that are written."""

    def __init__(
        self, server: str, most: int = MOST, *, answers: Literal["whole", "numbers", "empty"] = "whole"
    ) -> None:
        super().__init__(server, 0, 0)
        self._most = most
        self._answers = answers

    def keeps(self, record: dict[str, Any]) -> dict[str, Any]:
        """The record as the service keeps it."""
        return kept(record, self._most)

    def answer(self, request: Received) -> Answer:
        """Forward a request as the service takes it."""
        if request.method in {"POST", "PATCH", "PUT"} and "/api/" in request.path:
            record = self.keeps(json.loads(request.body))
            if request.path.endswith("/assets"):
                record["name"] = f"{record['name']} (file)"
            request = replace(request, body=json.dumps(record).encode())
        answer = forwarded(request, self.server)
        if request.method not in {"POST", "PATCH"} or "/api/" not in request.path or answer.status not in {200, 201}:
            return answer
        if self._answers == "numbers" and request.method == "POST":
            return Answer({"id": json.loads(answer.body)["id"]}, answer.status)
        return answer if self._answers == "whole" else Answer(status=204)


@pytest.fixture
def through(pair: LibraryPair, request: pytest.FixtureRequest) -> Iterator[LibraryPair]:
    """A pair whose target keeps texts otherwise. It answers with records, with the numbers of new ones alone, or with nothing."""
    with ChangingWay(pair.sandbox.url, answers=getattr(request, "param", "whole")) as way:
        yield pair.through_proxy(way.url)


def snapshot_of(pair: LibraryPair, payloads: dict[int, dict[str, Any]], days: int = 1) -> Snapshot:
    texts = [json.dumps({"id": number, **payload}) for number, payload in payloads.items()]
    return make_snapshot(DataFolder(pair.config.parent / "library-data"), texts, now=STARTED_AT + timedelta(days=days))


def check_named(pair: LibraryPair, plan: Plan, tmp_path: Path, fields: dict[int, set[str]]) -> None:
    """Apply, status, verify and evidence count what the service keeps otherwise, and name it."""
    records = set(fields)
    applied = pair.apply(plan)
    assert (applied.complete, applied.failed, applied.lacking.writes) == (False, 0, len(records))
    assert {finding.source_id for finding in applied.findings if finding.kind == ReasonKind.WRITES} == records
    assert pair.status(plan).lacking == applied.lacking
    bag = tmp_path / f"evidence-{plan.name}"
    proof = pair.verify(plan, evidence=bag)
    assert (proof.equal, proof.as_planned, proof.missing, proof.duplicated) == (False, False, 0, 0)
    named_fields: dict[int, set[str]] = {}
    for finding in proof.findings:
        named_fields.setdefault(finding.source_id or 0, set()).add(finding.field)
    assert named_fields == fields
    assert f"{len(records)} differing" in (bag / "data" / "README.txt").read_text() + (bag / "bag-info.txt").read_text()


@pytest.mark.long
@pytest.mark.parametrize("through", ["empty"], indirect=True)
def test_a_new_record_that_no_answer_names_is_decided_in_the_next_plan(through: LibraryPair) -> None:
    """I8: it differs from what was sent, so it is not adopted; to delete it and to apply again would bring the same."""
    snapshot = snapshot_of(through, PAYLOADS)
    failures = through.apply(through.plan(snapshot)).failures
    assert {failure.source_id for failure in failures} == {*KEPT}
    assert all("if one of them is it, plan again" in failure.problem for failure in failures)
    plan = through.plan(snapshot)
    assert {row.source_id: row.reason for row in plan.rows(Action.CONFLICT)} == dict.fromkeys(KEPT, "fields_differ")
    lines = plan.path(CONFLICTS).read_text("utf-8-sig").splitlines()
    decided = [lines[0], *(f"{line}target" for line in lines[1:])]
    plan.path(CONFLICTS).write_text("\n".join(decided), "utf-8")
    plan = through.plan(snapshot)
    assert (plan.facts.count(Action.CONFLICT), plan.facts.empty) == (0, True)


@pytest.mark.long
@pytest.mark.parametrize("through", [pytest.param("whole", marks=pytest.mark.long), "numbers"], indirect=True)
def test_every_later_plan_names_it_until_people_put_it_right(through: LibraryPair, tmp_path: Path) -> None:
    """Also what a later plan patched; none patches it again, and a value that the source changes is sent once."""
    through.apply(through.plan(snapshot_of(through, PAYLOADS)))
    changed = {
        **PAYLOADS,
        3: {**PAYLOADS[3], "abstract": "<p>Two</p>"},
        4: {**PAYLOADS[4], "title": "No longer  plain"},
        5: {**PAYLOADS[5], "abstract": "New"},
    }
    snapshot, of_fields = snapshot_of(through, changed, days=2), {**KEPT, 4: {"title"}}
    plan = through.plan(snapshot)
    patched = {row.source_id: {*row.payload} for row in plan.rows(Action.PATCH)}
    assert patched == {3: {"abstract"}, 4: {"title"}, 5: {"abstract"}}
    through.apply(plan)
    for overwrite in (False, True):
        plan = through.plan(snapshot, overwrite=overwrite)
        assert (plan.facts.count(Action.UNCHANGED), plan.facts.empty) == (len(PAYLOADS), True)
        assert {row.source_id: {*row.kept} for row in plan.rows() if row.kept} == of_fields
        named = [line for line in lines_of(plan) if line["code"] == "kept_otherwise"]
        assert {int(line["record"]) for line in named} == {*of_fields}
        assert "5 incomplete writes" in plan.path(HTML).read_text(encoding="utf-8")
        check_named(through, plan, tmp_path, of_fields)
    ids = {record["identifiers"][0]["value"]: record["id"] for record in through.publications()}
    for number, names in of_fields.items():
        values = {name: changed[number][name] for name in names}
        through.call("PATCH", f"publications/{ids[f'10.1000/{number}']}", values)
    assert through.verify(plan).equal
    assert not any(row.kept for row in through.plan(snapshot).rows())


@pytest.mark.parametrize("through", ["whole", pytest.param("empty", marks=pytest.mark.long)], indirect=True)
def test_names_of_files_are_named_too(through: LibraryPair) -> None:
    """Each file that was attached under another name; a later plan attaches none of them again."""
    snapshot = through.newest()
    first = through.plan(snapshot)
    count = first.facts.files.upload - first.facts.files.covers
    through.apply(first)
    for _ in range(2):
        plan = through.plan(snapshot)
        assert plan.facts.empty
        assert [file.kept for row in plan.rows() for file in row.files if file.kept] == ["name"] * count
        applied, proof = through.apply(plan), through.verify(plan)
        named = [item.problem for item in applied.findings if item.problem.startswith("The file")]
        assert len(named) == count
        assert all(problem.endswith("the service keeps another name than was sent.") for problem in named)
        assert (proof.equal, proof.files.differing) == (False, count)
