"""Makes the row of a plan from a matched record, whichever resource it is.

The rule is `field_merge`: add what the target lacks, replace what an earlier plan wrote unless people edited it since, and ask a person
about everything else.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from msgspec.structs import replace

from pipelines.migration.model.actions import PRESENT_ACTIONS, Action, Decision, FileAction
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.file_comparison import described_files, files_of
from pipelines.migration.model.plan import PlannedFile, PlannedReference, PlanRow, Referred
from pipelines.migration.model.reasons import LOCATION_MISSING, NOTHING_TO_SEND, TWINS
from pipelines.migration.model.resource_types import NAMES, ResourceType, without_signed_addresses
from pipelines.migration.plan.comparison import Match
from pipelines.migration.plan.field_merge import CONFLICTS, FieldVerdict, WrittenField, merge_field
from pipelines.migration.plan.files import planned_files
from pipelines.migration.plan.mapped_references import MappedForm
from pipelines.migration.plan.merges import (
    MERGE_INTO_ANOTHER,
    MERGE_UNCLEAR,
    decided_merge,
    merge_row,
)
from pipelines.migration.plan.target_ids import TargetIds
from pipelines.records.files import attached_files
from pipelines.records.forms import PublicationForm, add_unsent_files, precision_of
from pipelines.records.left_out import LeftOut
from pipelines.records.values import RecordId, partial_date

Verdicts = Mapping[str, FieldVerdict]


class Outcome(NamedTuple):
    """What happens to a record. `source`, `target`: field → JSON as it is compared."""

    action: Action
    reason: str | None
    verdicts: Verdicts
    source: Mapping[str, str]
    target: Mapping[str, str]

    def with_verdict(self, *verdicts: FieldVerdict) -> list[str]:
        """The fields of these verdicts, in the order in which they are sent."""
        return [name for name, verdict in self.verdicts.items() if verdict in verdicts]

    def both(self, names: Iterable[str]) -> dict[str, list[str | None]]:
        """Fields with the values of both sides."""
        return {name: [self.source.get(name), self.target.get(name)] for name in names}


def compared_fields(resource_type: ResourceType, ids: TargetIds) -> list[str]:
    """References to a resource that was not matched are compared within one library only, whose ids they are."""
    references = resource_type.references
    return [
        name
        for name in resource_type.fields
        if name in resource_type.sent_without_references or all(map(ids.knows, references.get(name, ())))
    ]


def outcome_of(resource_type: ResourceType, match: Match, fields: Sequence[str], *, overwrite: bool) -> Outcome:
    """What happens to a record. `fields`: those that are compared. `overwrite`: the source's value counts wherever it has one."""
    source = resource_type.compared(match.source.values)
    target = source if match.target is not None and match.target.values == match.source.values else {}
    if match.target is not None and target is not source:
        target = resource_type.compared(match.target.values)
    verdicts = _verdicts(resource_type, match, fields, (source, target), overwrite=overwrite)
    return Outcome(*_action_and_reason(resource_type, match, verdicts), verdicts, source, target)


def _action_and_reason(resource_type: ResourceType, match: Match, verdicts: Verdicts) -> tuple[Action, str | None]:
    if match.decision == Decision.SKIP:
        return Action.SKIPPED, None
    if match.reason is not None:
        return Action.CONFLICT, match.reason
    if match.target_id is None:
        quarantined = _quarantine_reason(resource_type, match.source)
        return (Action.CREATE if quarantined is None else Action.QUARANTINED), quarantined
    kinds = {*verdicts.values()}
    reason = next((reason for verdict, reason in CONFLICTS.items() if verdict in kinds), None)
    if reason is not None:
        return Action.CONFLICT, reason
    return (Action.PATCH if FieldVerdict.PATCH in kinds else Action.UNCHANGED), None


def _quarantine_reason(resource_type: ResourceType, record: MappedForm) -> str | None:
    """Why a record that the target lacks cannot be created there; none where it can."""
    if not resource_type.created:
        return LOCATION_MISSING
    return record.reason or (None if record.values else NOTHING_TO_SEND)


def _verdicts(
    resource_type: ResourceType,
    match: Match,
    fields: Sequence[str],
    sides: tuple[Mapping[str, str], Mapping[str, str]],
    *,
    overwrite: bool,
) -> Verdicts:
    """Field → its verdict, for a record that the target has."""
    if match.target_id is None:
        return {}
    source, target = sides
    if source is target:
        return {name: FieldVerdict.SAME for name in fields if name not in match.source.unknown}
    unsent, wanted = match.source.unsent, match.wanted
    # To lists below a record people may add; what is taken out of them in the source is told from that by what there was
    edited = {name for name in resource_type.posted if match.held.get(name) != digest(target.get(name))}
    held = {name: text for name, text in match.held.items() if name not in edited}
    decision = None if match.decision == Decision.MERGE else match.decision
    # What the target has in a form that is not read is not nothing
    guarded = {*resource_type.guarded, *(match.target.unsent if match.target is not None else ())}
    return {
        name: merge_field(
            source.get(name),
            target.get(name),
            written=WrittenField(wanted.get(name), held[name], name in wanted) if name in held else None,
            decision=decision,
            overwrite=overwrite,
            is_set=name in resource_type.lists,
            guarded=name in guarded,
            begins=_known_part(unsent.get(precision_of(name))) if name in resource_type.dates else "",
        )
        for name in fields
        if name not in match.source.unknown
    }


def _known_part(text: object) -> str:
    """The year or month of a date without a day."""
    partial = partial_date(text) if isinstance(text, str) else None
    return partial.known if partial else ""


@dataclass
class RowMaker:
    """Makes the rows of one resource."""

    resource_type: ResourceType
    ids: TargetIds
    overwrite: bool

    def __post_init__(self) -> None:
        self.fields = compared_fields(self.resource_type, self.ids)

    def row(self, match: Match) -> PlanRow:
        """The row of a record. Records of which an earlier row disposes are not merged again."""
        merge, name = decided_merge(match), self.resource_type.resource
        if merge is not None and not merge.fits:
            return self._row(match._replace(reason=MERGE_INTO_ANOTHER))
        if merge is None or any((name, number) in self.ids.merged for number in (merge.remains, *merge.ids)):
            return self._row(match)
        if self.resource_type.merge is None:
            return self._row(match._replace(reason=MERGE_UNCLEAR))
        self.ids.note_merge(name, merge.ids, merge.remains)
        outcome = outcome_of(self.resource_type, match, self.fields, overwrite=False)
        same = outcome.with_verdict(FieldVerdict.SAME) if merge.remains == match.target_id else []
        return merge_row(self.resource_type, match, merge, {field: digest(outcome.source.get(field)) for field in same})

    def _row(self, match: Match) -> PlanRow:
        resource = self.resource_type
        outcome = outcome_of(resource, match, self.fields, overwrite=self.overwrite)
        if match.target_id is not None and self._may_be_another(match, outcome):
            match = match._replace(target_id=None, candidates=[match.target_id])
            outcome = outcome._replace(action=Action.CONFLICT, reason=CONFLICTS[FieldVerdict.CONFLICT])
        action, reason = outcome.action, outcome.reason
        sent = self._sent(match, outcome)
        references = {name: reference for name, reference in match.source.references.items() if name in sent}
        for name in resource.posted.keys() & {*sent}:
            references[name] = self._added_later(name, match.source.values.get(name, []), references.get(name))
        at_once = [name for name in sent if name not in references or name in match.source.at_once]
        same = outcome.with_verdict(FieldVerdict.SAME)
        kept = outcome.both(
            name for name in same if name in match.wanted and outcome.source.get(name) != outcome.target.get(name)
        )
        expected = self._expected(outcome, at_once, same, kept, references)
        first = {name: value for name, value in match.source.at_once.items() if name in at_once}
        expected |= {name: digest(text) for name, text in resource.compared(first).items()}
        described = files_of(match.described)
        files = self._files(match, described, outcome.action)
        if action == Action.UNCHANGED and any(file.action == FileAction.UPLOAD for file in files):
            action = Action.PATCH
        if reason is None and match.twins and action in (Action.PATCH, Action.UNCHANGED):
            reason = TWINS
        unsent, why = self._left_out(match, described)
        matched_by = match.matched_by
        if matched_by is None and match.decision in (Decision.CREATE, Decision.SKIP):
            matched_by = "decision"
        return PlanRow(
            resource=resource.resource,
            source_id=match.source_id,
            target_id=match.target_id,
            action=action,
            matched_by=matched_by,
            title=resource.title(match.source.values),
            payload=self._payload(match, at_once, is_new=action == Action.CREATE),
            before=self._before(match, sent) if outcome.action == Action.PATCH else {},
            expected=expected,
            differing=outcome.both(outcome.with_verdict(*CONFLICTS)),
            reason=reason,
            candidates=match.twins if reason == TWINS else match.candidates,
            files=files,
            unsent=unsent,
            why=why,
            references=references,
            kept=kept,
            after=[*match.source.after] if action == Action.CREATE else [],
        )

    def _may_be_another(self, match: Match, outcome: Outcome) -> bool:
        """Whether a record that was found by its name has another parent: a shelf of the same name may stand in another room.

        Until a person has decided, nothing refers to it. A parent that the target lacks is another one, too.
        """
        if match.matched_by != NAMES[0].matched_by or match.decision is not None or match.target is None:
            return False
        parents, target = self.resource_type.parents, match.target.values
        missing = {name for name in parents if match.source.why.get(name) == LeftOut.NO_RECORD and name in target}
        return bool(missing) or not parents.isdisjoint(outcome.with_verdict(FieldVerdict.CONFLICT))

    def _added_later(self, name: str, ids: list[RecordId], reference: PlannedReference | None) -> PlannedReference:
        """The records that are added to a list below the record, once that is there."""
        resource = self.resource_type.fields[name].leads_to
        later = reference or PlannedReference([Referred(resource, number, number) for number in ids], ids)
        return replace(later, later=True)

    def _sent(self, match: Match, outcome: Outcome) -> list[str]:
        if outcome.action == Action.CREATE:
            return [name for name in self.resource_type.fields if name in match.source.values]
        return outcome.with_verdict(FieldVerdict.PATCH) if outcome.action == Action.PATCH else []

    def _payload(self, match: Match, names: Sequence[str], *, is_new: bool) -> dict[str, Any]:
        """What is sent. An emptied field gets what the source has, else an empty list or null."""
        values, empty = match.source.values | match.source.at_once, match.source.empty
        replaced = match.target.values if match.target is not None else {}
        payload = {
            name: values[name]
            if name in values
            else empty.get(
                name, [] if name in self.resource_type.lists or isinstance(replaced.get(name), list) else None
            )
            for name in names
        }
        new = {name: value for name, value in empty.items() if name not in self.resource_type.posted}
        return payload | new if is_new else payload

    def _before(self, match: Match, names: Sequence[str]) -> dict[str, Any]:
        whole = match.target.whole if match.target is not None else {}
        return {name: whole.get(name) for name in names}

    def _expected(
        self,
        outcome: Outcome,
        sent: Sequence[str],
        same: Sequence[str],
        kept: Container[str],
        references: Container[str],
    ) -> dict[str, str | None]:
        """Field → digest of the value that the target should have afterwards, also where the service is known to keep another one.

        A reference to a record that is still to be created has none yet.
        """
        source, target, filled = outcome.source, outcome.target, self.resource_type.filled
        if outcome.action == Action.CREATE:
            names = [name for name in self.resource_type.fields if name in sent or name not in filled]
        else:
            names = [*sent]
        expected = {name: digest(source.get(name)) for name in names if name not in references}
        for name in same:
            if name not in references:
                expected[name] = digest((source if name in kept else target).get(name))
        return expected

    def _files(self, match: Match, described: Mapping[str, Any], action: Action) -> list[PlannedFile]:
        if not described or action not in PRESENT_ACTIONS:
            return []
        written = match.written if action != Action.CREATE else ()
        return planned_files(attached_files(described), match.contents, described_files(match.in_target), written)

    def _left_out(self, match: Match, described: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        """What is not sent of a record and of its files: path → value, and path → code of the reason."""
        unsent, why = {**match.source.unsent}, {**match.source.why}
        in_target = match.target.unsent if match.target is not None else unsent
        for path in [path for path, code in why.items() if code == LeftOut.BY_ACTION]:
            if self.resource_type.action_of(path, in_target.get(path)) in match.source.after:
                del unsent[path], why[path]
        add_unsent_files(described, PublicationForm(unsent=unsent, why=why))
        return without_signed_addresses(unsent), why
