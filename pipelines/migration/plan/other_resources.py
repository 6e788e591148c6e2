"""Plans users, authorities, collections, locations, hard copies and tasks.

The rule is that of the publications: add what the target lacks, replace what is ours and untouched, ask a person of all else
(classifying.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from pipelines.migration.model.comparable import STEP, digest
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import CONFLICT, CREATE, PATCH, QUARANTINED, UNCHANGED, PlannedReference
from pipelines.migration.model.plan_table import PLAN
from pipelines.migration.model.resource_types import (
    AFTER,
    BEFORE,
    COMPLETED,
    LOCATIONS,
    PUBLICATIONS,
    RESOURCE_TYPES,
    USERS,
    ResourceType,
)
from pipelines.migration.plan.match_store import (
    JournalledRecord,
    MatchResult,
    MatchStore,
    NotingWriter,
    TargetListing,
    numbered,
)
from pipelines.migration.plan.publications import NOTHING_TO_SEND, Totals, as_json, batched
from pipelines.migration.plan.three_way_merge import SKIPPED
from pipelines.records.batches import Row, table_batch, transposed
from pipelines.records.residue import bounded, residue_counts, residue_json
from pipelines.records.tables import Column, Table
from pipelines.records.values import compact_json, decode_json
from pipelines.store.encryption import PersonalKey
from pipelines.store.parquet import TableWriter, table_writer

if TYPE_CHECKING:
    from pipelines.migration.plan.conflicts import Decision

LOCATION_MISSING, AT_MISSING_LOCATION = "location_missing", "at_missing_location"
REFERENCE_MISSING, TASK_COMPLETED = "reference_missing", "task_completed"
"""Reasons of quarantined records."""

UNFIT = frozenset({NOTHING_TO_SEND, LOCATION_MISSING, AT_MISSING_LOCATION, REFERENCE_MISSING, TASK_COMPLETED})
"""Every reason for which a record cannot be sent; no decision changes that."""

IDS = Table(
    "ids", "Ids of a resource in the target.", ("id",), (Column("id", pa.int64(), "The record.", required=True),)
)

_Verdicts = dict[str, str]


def plan_other(
    writer: NotingWriter,
    room: MatchStore,
    other: ResourceType,
    source: TargetListing,
    target: TargetListing,
    *,
    ids: Path,
    journal: Journal,
    decisions: Mapping[int, Decision],
    overwrite: bool = False,
) -> Totals:
    """Append a row for each record of the source. `ids`: where those of the target are kept, to know later what is new there."""
    totals = _laid_out(room, other, source, target)
    room.match(other, journal, decisions)
    with table_writer(ids, IDS) as known:
        for numbers in room.their_ids():
            known.write(table_batch(IDS, [numbers]))
    rows = (_row(other, one, decisions.get(one.source_id), totals, overwrite=overwrite) for one in room.outcomes(other))
    for batch in batched(rows, STEP):
        writer.write(table_batch(PLAN, transposed(batch, PLAN)))
    return totals


def match_other(
    room: MatchStore, other: ResourceType, source: TargetListing, target: TargetListing, *, journal: Journal
) -> None:
    """Only find out what the records of the source are in the target: others refer to them."""
    totals = _laid_out(room, other, source, target)
    room.match(other, journal, {})
    for batch in batched((_row(other, one, None, totals, overwrite=False) for one in room.outcomes(other)), STEP):
        room.note(table_batch(PLAN, transposed(batch, PLAN)), to_be_created=False)


def _laid_out(room: MatchStore, other: ResourceType, source: TargetListing, target: TargetListing) -> Totals:
    unfit, theirs_unfit = [0], [0]
    theirs = ((number, other.values(record)) for number, record in numbered(target.records(), theirs_unfit))
    ours = ((number, _ours(room, other, record)) for number, record in numbered(source.records(), unfit))
    room.lay_out(other, ours, theirs)
    return Totals(source.rows - unfit[0], target.rows, unfit[0], together=False)


def _ours(room: MatchStore, other: ResourceType, record: dict[str, Any]) -> JournalledRecord:
    """A record as the target would take it. What it refers to and will only be created there stands in its place as `{"source": id}`."""
    values, unsent = other.values(record), other.unsent(record)
    references: dict[str, PlannedReference] = {}
    reason = TASK_COMPLETED if unsent.get(COMPLETED) and other.resource == "tasks" else None
    for name, resource in other.references.items():
        if name not in values:
            continue
        given, many = values[name], name in other.lists
        kept = []
        for position, number in enumerate(given if many else [given]):
            there, target_id = room.became(resource, number)
            if there:
                kept.append((number, target_id))
            else:
                unsent[f"{name}[{position}]" if many else name] = number
                if not many:
                    reason = AT_MISSING_LOCATION if resource == LOCATIONS else REFERENCE_MISSING
        if not kept:
            del values[name]
            continue
        shown = [{"source": number} if target_id is None else target_id for number, target_id in kept]
        values[name] = shown if many else shown[0]
        if any(target_id is None for _number, target_id in kept):
            source_ids, target_ids = zip(*kept, strict=True)
            references[name] = PlannedReference(resource, [*source_ids], [*target_ids], many)
    return JournalledRecord(values=values, references=references, unsent=unsent, reason=reason)


def _row(other: ResourceType, found: MatchResult, decision: Decision | None, totals: Totals, *, overwrite: bool) -> Row:
    """One row of the plan, in the order of its columns."""
    ours, theirs = other.compared(found.ours.values), other.compared(found.theirs or {})
    verdicts: _Verdicts = {}
    if found.target_id is not None and other.created:
        verdicts = {
            name: _verdict(other, name, ours.get(name), theirs.get(name), found, decision, overwrite=overwrite)
            for name in other.fields
            if name in ours or name not in found.ours.unsent
        }
    action, reason = _action(other, found, decision, verdicts)
    sent = _sent(other, found, action, verdicts)
    references = {name: one for name, one in found.ours.references.items() if name in sent}
    payload = {
        name: found.ours.values.get(name, [] if name in other.lists else None)
        for name in sent
        if name not in references
    }
    before = {name: (found.theirs or {}).get(name) for name in sent} if action == PATCH else {}
    expected = {name: digest(ours.get(name)) for name in (other.fields if action == CREATE else sent)}
    expected |= {name: digest(theirs.get(name)) for name, verdict in verdicts.items() if verdict == "same"}
    for name in references:
        expected.pop(name, None)
    conflicts = [name for name, verdict in verdicts.items() if verdict in (CONFLICT, "edited")]
    unsent = residue_json(found.ours.unsent)
    _count(totals, other, found, action, unsent)
    return (
        other.resource,
        found.source_id,
        found.target_id,
        action,
        "decision" if found.matched_by is None and decision else found.matched_by,
        other.title(found.ours.values),
        as_json(payload),
        as_json(before),
        as_json(expected),
        as_json({name: [ours.get(name), theirs.get(name)] for name in conflicts}),
        reason,
        as_json(found.candidates),
        None,
        unsent,
        as_json(references),
    )


def _action(  # noqa: PLR0911  one line a case
    other: ResourceType, found: MatchResult, decision: Decision | None, verdicts: _Verdicts
) -> tuple[str, str | None]:
    if decision is not None and decision.decision == "skip":
        return SKIPPED, None
    if found.reason is not None:
        return CONFLICT, found.reason
    if found.target_id is not None:
        if "edited" in verdicts.values():
            return CONFLICT, "edited_in_target"
        if CONFLICT in verdicts.values():
            return CONFLICT, "fields_differ"
        return (PATCH if PATCH in verdicts.values() else UNCHANGED), None
    if not other.created:
        return QUARANTINED, LOCATION_MISSING
    if found.ours.reason is not None:
        return QUARANTINED, found.ours.reason
    return (CREATE, None) if found.ours.values else (QUARANTINED, NOTHING_TO_SEND)


def _sent(other: ResourceType, found: MatchResult, action: str, verdicts: _Verdicts) -> list[str]:
    """The fields that are sent."""
    if action == CREATE:
        return [name for name in other.fields if name in found.ours.values]
    return [name for name in other.fields if verdicts.get(name) == PATCH] if action == PATCH else []


def _verdict(  # noqa: PLR0911, PLR0917  one line a rule, in the order of classifying.py
    other: ResourceType,
    name: str,
    ours: str | None,
    theirs: str | None,
    found: MatchResult,
    decision: Decision | None,
    *,
    overwrite: bool,
) -> str:
    """same, patch, kept, edited or conflict: `classifying.classify` for one field."""
    decided = decision.decision if decision else ""
    if ours == theirs:
        return "same"
    if decided == "source" or (overwrite and ours is not None):
        return PATCH
    if decided == "target":
        return "kept"
    if found.held:
        as_before = digest(ours) == (found.wanted or {}).get(name)
        if digest(theirs) == found.held.get(name):
            return "same" if as_before else PATCH
        return "edited" if as_before else CONFLICT
    if ours is None:
        return "kept"
    if name in other.guarded:
        return CONFLICT
    if theirs is None:
        return PATCH
    return _of_lists(ours, theirs) if name in other.lists else CONFLICT


def _of_lists(ours: str, theirs: str) -> str:
    mine, other = ({compact_json(one) for one in _entries(text)} for text in (ours, theirs))
    if mine <= other:
        return "kept"
    return PATCH if other <= mine else CONFLICT


def _entries(text: str) -> Iterator[Any]:
    found = decode_json(text.encode())
    yield from found if isinstance(found, list) else ()


def _count(totals: Totals, other: ResourceType, found: MatchResult, action: str, unsent: str | None) -> None:
    totals.actions[action] += 1
    if found.matched_by is not None:
        totals.matched_by[found.matched_by] += 1
    if unsent is not None:
        counts = residue_counts([found.ours.unsent])
        for path, count in counts.items():
            totals.unsent[f"{other.resource}.{path}"] += count
        totals.unsent = bounded(totals.unsent)
    if action == CREATE:
        totals.requests += 1
        totals.mails += other.resource == USERS
    elif action == PATCH:
        totals.requests += 1


class PlanPublications(Protocol):
    """`plan_publications`, as far as its sides are chosen."""

    def __call__(self, writer: TableWriter, *, users: MatchStore | None = None) -> Totals:
        """Append the rows of the publications."""


class PlanRows(Protocol):
    """`plan_all`, as far as a plan is chosen."""

    def __call__(
        self,
        writer: TableWriter,
        publications: PlanPublications,
        folder: Path,
        *,
        journal: Journal,
        decisions: Collection[Decision],
        same_library: bool,
    ) -> dict[str, Totals]:
        """Append the rows of every resource."""


def plan_all(
    writer: TableWriter,
    publications: PlanPublications,
    folder: Path,
    *,
    listed: Mapping[str, tuple[TargetListing, TargetListing]],
    resources: Collection[str],
    people: tuple[Path, PersonalKey | None],
    journal: Journal,
    decisions: Collection[Decision],
    same_library: bool = False,
    overwrite: bool = False,
) -> dict[str, Totals]:
    """Append the rows of every resource, in the order in which they are written; what they add up to.

    `publications` appends theirs. `listed`: resource → its records in the source and in the target; also of those only referred to.
    `people`: the file for the rows of users, and its key.
    """
    if not resources:
        return {PUBLICATIONS: publications(writer)}
    found: dict[str, Totals] = {}
    with MatchStore(folder / "others.sqlite", same_library=same_library, key=people[1]) as room, ExitStack() as stack:
        noting = dict.fromkeys((*BEFORE, PUBLICATIONS, *AFTER), NotingWriter(writer, room))
        if USERS in resources:
            noting[USERS] = NotingWriter(stack.enter_context(table_writer(people[0], PLAN, people[1])), room)
        for resource in (*BEFORE, PUBLICATIONS, *AFTER):
            if resource == PUBLICATIONS:
                found[resource] = publications(noting[resource], users=room if USERS in listed else None)
            elif resource in resources:
                decided = {one.source_id: one for one in decisions if one.resource == resource}
                found[resource] = plan_other(
                    noting[resource],
                    room,
                    RESOURCE_TYPES[resource],
                    *listed[resource],
                    ids=folder / "target" / f"{resource}.parquet",
                    journal=journal,
                    decisions=decided,
                    overwrite=overwrite,
                )
            elif resource in listed:
                match_other(room, RESOURCE_TYPES[resource], *listed[resource], journal=journal)
    return found
