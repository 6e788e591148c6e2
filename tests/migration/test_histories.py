"""`migrate` in its real life: plan, decide, apply in parts, edits on both sides, plan, apply, verify, undo, in random histories (I8).

A model of both libraries follows each history. Each plan has exactly the actions that follow from the edits, the target has exactly the
records of the model, verify names exactly what differs, and undo takes back what Bookferry wrote and nothing that a person did.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pipelines.migration.apply.run import Selection
from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import CONFLICTS, Plan
from pipelines.records.forms import form_of
from pipelines.service.client import READ_SECONDS
from tests.migration.library_pair import LibraryPair
from tests.sandbox.process import SandboxProcess

LARGE, SMALL = 1_000, 30
TITLE, ABSTRACT, REST = "title", "abstract", "rest"
"""The fields of the model; the rest of a record has one value, which nobody edits."""

Fields = dict[str, str | None]


def fields_of(record: dict[str, Any]) -> Fields:
    fields = form_of(record).fields
    return {TITLE: fields.get(TITLE), ABSTRACT: fields.get(ABSTRACT), REST: "there" if fields.get("authors") else None}


@dataclass
class Write:
    """What a plan wrote for a record; `before` is empty for a new record."""

    plan: str
    source_id: int
    target_id: int
    values: Fields
    before: Fields = field(default_factory=dict)
    is_new: bool = True


@dataclass
class Row:
    """What a plan should do about a record. `expected`: the fields that the target should have then."""

    action: Action
    target_id: int | None = None
    reason: str | None = None
    payload: Fields = field(default_factory=dict)
    expected: Fields = field(default_factory=dict)


@dataclass
class Model:
    """Both libraries, what was written from one to the other, and what a person decided. Ids are those of the service."""

    source: dict[int, Fields]
    target: dict[int, Fields] = field(default_factory=dict)
    entered: dict[int, int] = field(default_factory=dict)
    """Record of the source → one of the target that a person entered with its identifiers."""
    writes: list[Write] = field(default_factory=list)
    decisions: dict[int, tuple[str, int | None]] = field(default_factory=dict)

    def written(self, source_id: int) -> tuple[int | None, Fields]:
        """The record of the target, and the values that were written to it."""
        target_id, values = None, Fields()
        for write in self.writes:
            if write.source_id == source_id:
                values = write.values if write.is_new or write.target_id != target_id else {**values, **write.values}
                target_id = write.target_id
        return target_id, values

    def row(self, source_id: int) -> Row:
        """What a plan should do about a record now."""
        source = self.source[source_id]
        decision, named = self.decisions.get(source_id, ("", None))
        target_id, written = self.written(source_id)
        if decision == "skip":
            return Row(Action.SKIPPED)
        if named is not None:
            if named not in self.target:
                return Row(Action.CONFLICT, reason="decided_is_missing")
            target_id, written = named, written if named == target_id else {}
        elif decision != "create" and target_id is not None and target_id not in self.target:
            return Row(Action.CONFLICT, reason="deleted_in_target")
        elif target_id is None:
            target_id = self.entered.get(source_id)
        if decision == "create" or target_id not in self.target:
            return Row(Action.CREATE, None, None, dict(source), dict(source))
        target = self.target[target_id]
        verdicts = {
            name: self._verdict(source[name], target[name], decision, written.get(name, ""), name in written)
            for name in source
        }
        reason = {"edited": "edited_in_target", "conflict": "fields_differ"}
        if problems := [reason[verdict] for verdict in ("edited", "conflict") if verdict in verdicts.values()]:
            return Row(Action.CONFLICT, target_id, problems[0])
        payload = {name: source[name] for name, verdict in verdicts.items() if verdict == "patch"}
        equal_fields = {name: source[name] for name, verdict in verdicts.items() if verdict == "same"}
        return Row(Action.PATCH if payload else Action.UNCHANGED, target_id, None, payload, equal_fields | payload)

    @staticmethod
    def _verdict(source: str | None, target: str | None, decision: str, wrote: str | None, is_written: bool) -> str:
        if source == target:
            return "same"
        if decision in ("source", "target"):
            return "patch" if decision == "source" else "keep"
        if is_written:
            return "patch" if target == wrote else "edited" if source == wrote else "conflict"
        if source is None:
            return "keep"
        return "patch" if target is None else "conflict"

    def rows(self) -> dict[int, Row]:
        """Record of the source → what a plan should do about it now."""
        return {source_id: self.row(source_id) for source_id in self.source}

    def undo(self, plan: str) -> tuple[int, int, int, int]:
        """Take a plan back; returns what is deleted, reverted, gone and left."""
        deleted = reverted = gone = left = 0
        for place, write in [*enumerate(self.writes)]:
            if write.plan != plan:
                continue
            now, later = self.target.get(write.target_id), self.writes[place + 1 :]
            if now is None:
                gone += 1
            elif any(later_write.source_id == write.source_id for later_write in later) or (
                write.is_new and now != write.values
            ):
                left += 1
                continue
            elif write.is_new:
                del self.target[write.target_id]
                deleted += 1
            else:
                restored = {name: old for name, old in write.before.items() if now[name] == write.values[name] != old}
                edited = [name for name, old in write.before.items() if now[name] not in (write.values[name], old)]
                now |= restored
                reverted += bool(restored)
                left += bool(edited)
            write.plan = ""
        self.writes = [write for write in self.writes if write.plan]
        return deleted, reverted, gone, left


class History:
    """Does to the libraries what the model does, and compares them."""

    def __init__(self, pair: LibraryPair) -> None:
        self.pair = pair
        self.library = pair.library()
        records = self.library.publications()
        self.model = Model({record["id"]: fields_of(record) for record in records})
        titles = Counter(record["title"] for record in records)
        values = Counter(identifier["value"] for record in records for identifier in record["identifiers"])
        self.usable = [
            record
            for record in records
            if titles[record["title"]] == 1
            and any(identifier["type"] == "doi" for identifier in record["identifiers"])
            and record["authors"]
            and all(values[identifier["value"]] == 1 for identifier in record["identifiers"])
        ]
        """Records that nothing but their number, title and identifiers tells from others."""
        self.edits = self.backups = 0
        self.plans: list[Plan] = []
        self.rows: dict[int, Row] = {}
        self.pending: list[int] = []
        self.is_new = True
        """Whether the source has no snapshot of its present state."""

    def edit(self, library: LibraryPair, records: dict[int, Fields], number: int, name: str) -> None:
        """A person changes, or empties, a field."""
        self.edits += 1
        records[number][name] = None if name == ABSTRACT and self.edits % 5 == 0 else f"Edited {self.edits}"
        library.call("PATCH", f"publications/{number}", {name: records[number][name]})
        self.is_new |= records is self.model.source

    def edit_source(self, place: int, how: str) -> None:
        """A person edits the field `how`, adds or deletes a record of the source."""
        numbers = [record["id"] for record in self.usable if record["id"] in self.model.source]
        number = numbers[place % len(numbers)]
        if how == "add":
            self.edits += 1
            identifier = {"type": "doi", "value": f"10.1000/added.{self.edits}"}
            author = {"name": "Ada", "type": "person"}
            fields = {"title": f"Added {self.edits}", "authors": [author], "identifiers": [identifier]}
            record = self.library.call("POST", "publications", fields)
            self.model.source[record["id"]] = fields_of(record)
            self.usable.append(record)
        elif how == "delete" and len(numbers) > 2:
            self.library.call("DELETE", f"publications/{number}")
            del self.model.source[number]
        else:
            self.edit(self.library, self.model.source, number, TITLE if how == TITLE else ABSTRACT)
        self.is_new = True

    def edit_target(self, place: int, how: str) -> None:
        """A person edits the field `how`, or deletes a record that was moved; or enters one that was not, or one of their own."""
        model, linked = self.model, {write.target_id for write in self.model.writes}
        numbers = sorted(linked & {*model.target})
        if how == "enter":
            open_ids = {number for number, row in model.rows().items() if row.action == Action.CREATE}
            records = [
                record
                for record in self.usable
                if record["id"] in open_ids and record["id"] not in {*model.entered, *model.decisions}
            ]
            if records:
                record = records[place % len(records)]
                abstract = None if place % 2 else "By hand"
                fields = {
                    "title": model.source[record["id"]][TITLE],
                    "identifiers": record["identifiers"],
                    "abstract": abstract,
                }
                number = self.pair.call("POST", "publications", fields)["id"]
                model.target[number] = {TITLE: fields["title"], ABSTRACT: abstract, REST: None}
                model.entered[record["id"]] = number
        elif how == "own":
            self.edits += 1
            number = self.pair.call("POST", "publications", {"title": f"Own {self.edits}"})["id"]
            model.target[number] = {TITLE: f"Own {self.edits}", ABSTRACT: None, REST: None}
        elif numbers and how == "delete":
            self.pair.call("DELETE", f"publications/{numbers[place % len(numbers)]}")
            del model.target[numbers[place % len(numbers)]]
        elif numbers:
            self.edit(self.pair, model.target, numbers[place % len(numbers)], TITLE if how == TITLE else ABSTRACT)

    def plan(self) -> Plan:
        """Plan, and compare each row with the model."""
        if self.is_new:
            self.backups += 1
            self.pair.back_up(f"run{self.backups}", files=False)
            self.is_new = False
        latest = self.plans[-1].name if self.plans else ""
        created = {write.source_id for write in self.model.writes if write.plan == latest}
        self.model.decisions = {
            number: decision
            for number, decision in self.model.decisions.items()
            if decision[0] != "create" or number not in created
        }
        self.rows = self.model.rows()
        plan = self.pair.plan(self.pair.newest())
        planned = {
            row.source_id: (row.action, row.target_id, row.reason, {*row.payload} & {TITLE, ABSTRACT})
            for row in plan.rows()
        }
        expected = {
            number: (
                row.action,
                row.target_id,
                row.reason,
                {name for name, value in row.payload.items() if name != REST and (value or row.target_id)},
            )
            for number, row in self.rows.items()
        }
        for number, row in planned.items():
            if row[0] == Action.SKIPPED:  # its match does not matter
                planned[number] = Action.SKIPPED, None, None, set()
        numbers = planned.keys() | expected.keys()
        differing = {number for number in numbers if planned.get(number) != expected.get(number)}
        assert not {number: (planned.get(number), expected.get(number)) for number in differing}
        self.pending = [row.source_id for row in plan.rows(Action.CREATE, Action.PATCH)]
        self.plans.append(plan)
        return plan

    def decide(self, choices: list[str]) -> bool:
        """Write decisions into the first lines of conflicts.tsv that wait; returns whether there were any."""
        waiting = [(number, row) for number, row in self.rows.items() if row.action == Action.CONFLICT]
        for (number, row), choice in zip(waiting, choices, strict=False):
            decision = choice if row.target_id is not None or choice in ("create", "skip") else "create"
            named = row.target_id if decision in ("source", "target") else None
            self.model.decisions[number] = decision, named
        if not waiting or not choices:
            return False
        lines = [
            f"publications\t{number}\t{decision} {named or ''}\n"
            for number, (decision, named) in self.model.decisions.items()
        ]
        path = self.plans[-1].path(CONFLICTS)
        path.write_text("resource\tsource_id\tdecision\n" + "".join(lines), encoding="utf-8")
        return True

    def apply(self, limit: int | None = None) -> None:
        """Apply the newest plan, or its next records, and compare the target with the model."""
        plan, batch = self.plans[-1], self.pending[:limit]
        self.pending = self.pending[len(batch) :]
        applied = self.pair.apply(plan, selection=Selection(limit=limit))
        counts = Counter(self.rows[number].action for number in batch)
        assert (applied.created, applied.patched) == (counts[Action.CREATE], counts[Action.PATCH])
        assert (applied.failed, applied.left) == (0, len(self.pending))
        with self.pair.migration() as migration, migration.journal_of(plan) as journal:
            for number in batch:
                row, target_id = self.rows[number], journal.target_id_of("publications", number)
                assert target_id is not None
                assert row.target_id in (None, target_id)
                before = self.model.target.setdefault(target_id, {})
                old = {name: before[name] for name in row.payload if name in before}
                self.model.writes.append(Write(plan.name, number, target_id, row.payload, old, not before))
                before |= row.payload
        self.compare()

    def compare(self) -> None:
        """Nothing is lost, nothing is there twice, and every field is that of the model."""
        assert {record["id"]: fields_of(record) for record in self.pair.publications()} == self.model.target

    def verify(self) -> None:
        """Verify the newest plan, and compare the findings with the model."""
        verification = self.pair.verify(self.plans[-1])
        expected: dict[int, set[str]] = {}
        for number, row in self.rows.items():
            if row.action in (Action.CREATE, Action.PATCH, Action.UNCHANGED):
                target_id = row.target_id
                if row.action == Action.CREATE:
                    latest = [write for write in self.model.writes if write.plan == self.plans[-1].name]
                    target_id = next((write.target_id for write in latest if write.source_id == number), None)
                in_target = self.model.target.get(target_id or 0)
                differing = {name for name, value in row.expected.items() if in_target and in_target[name] != value}
                if differing or in_target is None:
                    expected[number] = differing
        findings: dict[int, set[str]] = {}
        for finding in verification.findings:
            if finding.field not in ("files", "cover"):
                assert finding.code == ("differing" if finding.field else "missing")
                names = {finding.field if finding.field in (TITLE, ABSTRACT) else REST} if finding.field else set()
                findings.setdefault(finding.source_id or 0, set()).update(names)
        assert findings == expected or len(verification.findings) >= 100
        assert verification.as_planned == (not expected)

    def undo(self) -> None:
        """Take the plans back, the newest first; a dry run says the same."""
        while self.plans:
            plan = self.plans.pop()
            dry_run, undone = self.pair.undo(plan), self.pair.undo(plan, really=True)
            expected = self.model.undo(plan.name)
            for result in (dry_run, undone):
                assert (result.deleted, result.reverted, result.gone, result.left) == expected
            self.compare()


EDITS_OF_TARGET = [TITLE, ABSTRACT, "enter", "own", "delete"]
DECISIONS = ["source", "target", "create", "skip"]


@contextmanager
def history(records: int) -> Iterator[History]:
    """Two libraries of its own: one of real records, and an empty one."""
    tenants = f"--tenant=library=real:{records}", "--tenant=empty=empty"
    with (
        SandboxProcess(*tenants, "--requests-per-minute", "0") as sandbox,
        TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("TEST_USER", sandbox.user)
        patch.setenv("TEST_PASSWORD", sandbox.password)
        pair = LibraryPair.at(Path(folder), sandbox, "library", "empty", read_seconds=READ_SECONDS)
        yield History(pair)


def live(records: int, chance: Random) -> None:
    """A history: in each round people edit both libraries, a plan is made, decided, and applied in parts, the last one perhaps not."""
    with history(records) as libraries:
        for _round in range(chance.randint(2, 3)):
            for _edit in range(chance.randint(1, 4)):
                libraries.edit_source(chance.randrange(records), chance.choice([TITLE, ABSTRACT, "add", "delete"]))
            for _edit in range(chance.randint(2, 6)):
                libraries.edit_target(chance.randrange(records), chance.choice(EDITS_OF_TARGET))
            libraries.plan()
            if libraries.decide([chance.choice(DECISIONS) for _conflict in range(chance.randint(0, 4))]):
                libraries.plan()
            libraries.apply(chance.randint(1, records))
            for _edit in range(2):
                libraries.edit_target(chance.randrange(records), "own")
            if chance.random() < 0.5:
                libraries.apply()
        for _edit in range(chance.randint(0, 3)):
            libraries.edit_target(chance.randrange(records), chance.choice([TITLE, ABSTRACT, "delete"]))
        libraries.verify()
        libraries.undo()


@pytest.mark.long
@settings(max_examples=2 if "CI" in os.environ else 1, phases=[Phase.generate])  # each is some ten runs of Bookferry
@given(st.integers(0, 2**32))
def test_a_history_of_a_small_library(seed: int) -> None:
    live(SMALL, Random(seed))


@pytest.mark.long
@settings(max_examples=1, phases=[Phase.generate])
@given(st.integers(0, 2**32))
def test_a_history_of_a_library_of_a_thousand_records(seed: int) -> None:
    live(LARGE, Random(seed))
