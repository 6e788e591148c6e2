"""Plans users, authorities, collections, locations, hard copies and tasks.

The rule is that of the publications (field_merge.py): add what the target lacks, replace what an earlier plan wrote unless people
edited it since, and ask a person about everything else.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.migration.model.actions import Action, Decision
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.plan import PEOPLE
from pipelines.migration.model.plan_table import PLAN, PlanTableRow
from pipelines.migration.model.reasons import TWINS
from pipelines.migration.model.resource_types import (
    MERGEABLE,
    PUBLICATIONS,
    USERS,
    WRITING_ORDER,
    ResourceType,
    is_written_later,
)
from pipelines.migration.model.target_reading import TargetListing
from pipelines.migration.plan.field_merge import CONFLICTS, FieldVerdict, WrittenField, merge_field
from pipelines.migration.plan.inputs import PlanInputs
from pipelines.migration.plan.match_store import (
    MatchResult,
    MatchStore,
    NotingWriter,
    numbered,
)
from pipelines.migration.plan.merges import (
    MERGE_INTO_ANOTHER,
    MERGE_UNCLEAR,
    SEVERAL,
    decided_merge,
    is_into_another,
    merge_row,
    twin_notes,
)
from pipelines.migration.plan.publications import match_publications, plan_publications
from pipelines.migration.plan.quarantine import quarantine_reason
from pipelines.migration.plan.references.records import in_order, prepare, with_known_references
from pipelines.migration.plan.rows import Totals, as_json, batches_of
from pipelines.records.batches import batch_of_columns
from pipelines.records.residue import bounded, residue_counts, residue_json
from pipelines.records.tables.description import Column, Table
from pipelines.store.encryption import PersonalKey
from pipelines.store.parquet import TableWriter, table_writer

if TYPE_CHECKING:
    from pipelines.migration.plan.conflicts import RecordDecision

IDS = Table(
    "ids", "Ids of a resource in the target.", ("id",), (Column("id", pa.int64(), "The record.", required=True),)
)

_Verdicts = Mapping[str, FieldVerdict]


def plan_all(
    writer: TableWriter,
    inputs: PlanInputs,
    *,
    listed: Mapping[str, tuple[TargetListing, TargetListing]],
    resources: Collection[str],
    types: Mapping[str, ResourceType],
    key: PersonalKey | None,
) -> dict[str, Totals]:
    """Append the rows of every resource, in the order in which they are written, and return their totals.

    `listed`: resource → its records in the source and in the target, also of those that are only referred to. `types`: how they are moved.
    `key` encrypts users.
    """
    totals: dict[str, Totals] = {}
    with (
        MatchStore(inputs.folder / "others.sqlite", same_library=inputs.same_library, key=key) as store,
        ExitStack() as stack,
    ):
        noting = NotingWriter(writer, store) if resources else writer
        writers: dict[str, TableWriter] = dict.fromkeys(WRITING_ORDER, noting)
        if USERS in resources:
            writers[USERS] = NotingWriter(stack.enter_context(table_writer(inputs.folder / PEOPLE, PLAN, key)), store)
        for resource in WRITING_ORDER:
            _match_ahead(store, types, listed, resource, inputs, resources)
            if resource == PUBLICATIONS:
                totals[resource] = plan_publications(writers[resource], inputs, store, with_users=USERS in listed)
            elif resource in resources:
                totals[resource] = _plan_resource(writers[resource], store, types[resource], *listed[resource], inputs)
            elif resource in listed:
                _match_resource(store, types[resource], *listed[resource], inputs)
    return totals


def _match_ahead(  # noqa: PLR0917  what is known when the turn of a resource comes
    store: MatchStore,
    types: Mapping[str, ResourceType],
    listed: Mapping[str, tuple[TargetListing, TargetListing]],
    resource: str,
    inputs: PlanInputs,
    resources: Collection[str],
) -> None:
    """Match the records that this resource may refer to before they are created: those of its own, and of resources that come later."""
    if resource == PUBLICATIONS:
        led_to = [rule.leads_to for rule in inputs.links.values()]
    else:
        led_to = [*types[resource].references.values()] if resource in resources else []
    for referred in WRITING_ORDER:
        if referred not in _all_led_to(led_to, types, listed) or not is_written_later(referred, resource):
            continue
        if referred == PUBLICATIONS:
            match_publications(inputs, store)
        elif referred in listed:
            unknown = {name for name in (*listed, PUBLICATIONS) if not store.knows(name)}
            known = with_known_references(types[referred], unknown)
            _match_resource(store, known, *listed[referred], inputs, to_be_created=referred in resources)


def _all_led_to(led_to: Iterable[str], types: Mapping[str, ResourceType], listed: Container[str]) -> set[str]:
    """These resources, and those to which their records refer in turn: what a record refers to may tell it from another."""
    referred, left = set[str](), [*led_to]
    while left:
        if (resource := left.pop()) not in referred:
            referred.add(resource)
            left += types[resource].references.values() if resource in listed else ()
    return referred


def _plan_resource(  # noqa: PLR0917  both sides, and what they are matched with
    writer: TableWriter,
    store: MatchStore,
    resource_type: ResourceType,
    source: TargetListing,
    target: TargetListing,
    inputs: PlanInputs,
) -> Totals:
    """Append a row for each record of the source, and keep the ids of the target, so that new ones are recognised later."""
    totals = _load(store, resource_type, source, target)
    decisions = _decisions_of(resource_type, inputs)
    store.match(resource_type, inputs.journal, decisions)
    resource = resource_type.resource
    with table_writer(inputs.folder / "target" / f"{resource}.parquet", IDS) as known:
        for ids in store.target_ids():
            known.write(batch_of_columns(IDS, {"id": ids}))
    matches = (in_order(store, resource, match) for match in store.results(resource_type))
    rows = (
        _row_or_merge(store, resource_type, match, decisions.get(match.source_id), totals, overwrite=inputs.overwrite)
        for match in matches
    )
    for batch in batches_of(PLAN, rows):
        writer.write(batch)
    if resource in MERGEABLE:
        totals.notes = twin_notes(resource, store.same_keys(resource_type), totals)
    return totals


def _decisions_of(resource_type: ResourceType, inputs: PlanInputs) -> dict[int, RecordDecision]:
    return {
        decision.source_id: decision for decision in inputs.decisions if decision.resource == resource_type.resource
    }


def _row_or_merge(
    store: MatchStore,
    resource_type: ResourceType,
    match: MatchResult,
    decision: RecordDecision | None,
    totals: Totals,
    *,
    overwrite: bool,
) -> PlanTableRow:
    """One row of the plan. Records of which an earlier row disposes are not merged again."""
    merge = decided_merge(match, decision)
    resource = resource_type.resource
    if decision is not None and decision.decision == Decision.MERGE:
        if is_into_another(match, decision):
            match = match._replace(reason=MERGE_INTO_ANOTHER)
        decision = None
    if merge is None or any((resource, number) in store.merged for number in (merge.remains, *merge.ids)):
        return _row(resource_type, match, decision, totals, overwrite=overwrite)
    if resource_type.merge is None:
        return _row(resource_type, match._replace(reason=MERGE_UNCLEAR), decision, totals, overwrite=overwrite)
    store.merged |= {(resource, number): merge.remains for number in merge.ids}
    source, target = resource_type.compared(match.source.values), resource_type.compared(match.target or {})
    verdicts = _verdicts(resource_type, match, source, target, None, overwrite=False)
    same = [name for name, verdict in verdicts.items() if verdict == FieldVerdict.SAME]
    held = {name: digest(source.get(name)) for name in same} if merge.remains == match.target_id else {}
    return merge_row(resource_type, match, merge, held, totals)


def _match_resource(
    store: MatchStore,
    resource_type: ResourceType,
    source: TargetListing,
    target: TargetListing,
    inputs: PlanInputs,
    *,
    to_be_created: bool = False,
) -> None:
    """Only match the records, because others refer to them; none is written here. `to_be_created`: whether this plan creates any."""
    totals = _load(store, resource_type, source, target)
    decisions, merged = _decisions_of(resource_type, inputs), {**store.merged}
    store.match(resource_type, inputs.journal, decisions)
    rows = (
        _row_or_merge(store, resource_type, match, decisions.get(match.source_id), totals, overwrite=inputs.overwrite)
        for match in store.results(resource_type)
    )
    for batch in batches_of(PLAN, rows):
        store.note(batch, to_be_created=to_be_created)
    store.merged = merged


def _load(store: MatchStore, resource_type: ResourceType, source: TargetListing, target: TargetListing) -> Totals:
    in_target = (
        (number, resource_type.redirected(resource_type.whole_values(record), store.merged))
        for number, record in numbered(target.records())
    )
    prepared = (
        (number, prepare(store.target_of, resource_type, record)) for number, record in numbered(source.records())
    )
    records = store.load(resource_type, prepared, in_target)
    return Totals(records, target.rows, source.rows - records)


def _row(
    resource_type: ResourceType,
    match: MatchResult,
    decision: RecordDecision | None,
    totals: Totals,
    *,
    overwrite: bool,
) -> PlanTableRow:
    """One row of the plan."""
    source, target = resource_type.compared(match.source.values), resource_type.compared(match.target or {})
    verdicts = _verdicts(resource_type, match, source, target, decision, overwrite=overwrite)
    action, reason = _action(resource_type, match, decision, verdicts)
    sent = _sent_fields(resource_type, match, action, verdicts)
    references = {name: reference for name, reference in match.source.references.items() if name in sent}
    empty = match.source.empty
    payload = {
        name: match.source.values.get(name, empty.get(name, [] if name in resource_type.lists else None))
        for name in sent
        if name not in references
    }
    if action == Action.CREATE:
        payload |= empty
    before = {name: (match.target or {}).get(name) for name in sent} if action == Action.PATCH else {}
    if before and resource_type.method == "PUT":  # it replaces the record, so that the other fields are sent again
        before = {**(match.target or {}), **before}
    expected = {name: digest(source.get(name)) for name in (resource_type.fields if action == Action.CREATE else sent)}
    wanted = match.wanted or {}
    kept = [
        name
        for name, verdict in verdicts.items()
        if verdict == FieldVerdict.SAME and name in wanted and source.get(name) != target.get(name)
    ]
    expected |= {
        name: digest((source if name in kept else target).get(name))
        for name, verdict in verdicts.items()
        if verdict == FieldVerdict.SAME
    }
    for name in references:
        expected.pop(name, None)
    conflicts = [name for name, verdict in verdicts.items() if verdict in CONFLICTS]
    unsent = residue_json(match.source.unsent)
    if reason is None and match.twins and action in (Action.PATCH, Action.UNCHANGED):
        reason = TWINS
    totals.proposed += reason == TWINS or (reason == SEVERAL and resource_type.resource in MERGEABLE)
    totals.count_links(references)
    totals.requests += (
        bool(payload) or action == Action.CREATE or not all(reference.later for reference in references.values())
    )
    _count(totals, resource_type, match, action, unsent)
    return PlanTableRow(
        resource=resource_type.resource,
        source_id=match.source_id,
        target_id=match.target_id,
        action=action,
        matched_by="decision" if match.matched_by is None and decision else match.matched_by,
        title=resource_type.title(match.source.values),
        payload=as_json(payload),
        before=as_json(before),
        expected=as_json(expected),
        differing=as_json({name: [source.get(name), target.get(name)] for name in conflicts}),
        reason=reason,
        candidates=as_json(match.twins if reason == TWINS else match.candidates),
        files=None,
        unsent=unsent,
        references=as_json(references),
        kept=as_json({name: [source.get(name), target.get(name)] for name in kept}),
    )


def _verdicts(
    resource_type: ResourceType,
    match: MatchResult,
    source: Mapping[str, str],
    target: Mapping[str, str],
    decision: RecordDecision | None,
    *,
    overwrite: bool,
) -> _Verdicts:
    """Field → its verdict, for a record that the target has; none for a resource of which nothing is written."""
    if match.target_id is None or not resource_type.created:
        return {}
    held = match.held or {}
    return {
        name: merge_field(
            source.get(name),
            target.get(name),
            written=WrittenField((match.wanted or {}).get(name), held[name]) if name in held else None,
            decision=decision.decision if decision else None,
            overwrite=overwrite,
            is_set=name in resource_type.lists,
            guarded=name in resource_type.guarded,
        )
        for name in resource_type.fields
        if name in source or name not in match.source.unsent
    }


def _action(
    resource_type: ResourceType, match: MatchResult, decision: RecordDecision | None, verdicts: _Verdicts
) -> tuple[Action, str | None]:
    """The action, and the reason of a conflict or a quarantine."""
    if decision is not None and decision.decision == Decision.SKIP:
        return Action.SKIPPED, None
    if match.reason is not None:
        return Action.CONFLICT, match.reason
    if match.target_id is None:
        reason = quarantine_reason(resource_type, match.source)
        return (Action.CREATE, None) if reason is None else (Action.QUARANTINED, reason)
    for verdict, reason in CONFLICTS.items():
        if verdict in verdicts.values():
            return Action.CONFLICT, reason
    return (Action.PATCH if FieldVerdict.PATCH in verdicts.values() else Action.UNCHANGED), None


def _sent_fields(resource_type: ResourceType, match: MatchResult, action: Action, verdicts: _Verdicts) -> list[str]:
    if action == Action.CREATE:
        return [name for name in resource_type.fields if name in match.source.values]
    if action == Action.PATCH:
        return [name for name in resource_type.fields if verdicts.get(name) == FieldVerdict.PATCH]
    return []


def _count(totals: Totals, resource_type: ResourceType, match: MatchResult, action: Action, unsent: str | None) -> None:
    totals.count(action, match.matched_by)
    if unsent is not None:
        for path, count in residue_counts([match.source.unsent]).items():
            totals.unsent[f"{resource_type.resource}.{path}"] += count
        totals.unsent = bounded(totals.unsent)
    totals.mails += action == Action.CREATE and resource_type.resource == USERS
