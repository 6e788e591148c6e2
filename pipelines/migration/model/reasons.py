"""Why something of the source is not in the target, or is otherwise there: each reason with its code, its sentence and its advice.

Page, tables of issues, conflicts.tsv, status, apply, verify and undo have their texts from here. A code is never renamed (docs/reports.md).
Codes are decided by plan/learned_fields.py (fields), records/forms.py and resource_types.py (values), and plan/record_rows.py (records).
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Any, NamedTuple, Self

from pipelines.migration.model.actions import Action, Decision, FileAction
from pipelines.migration.model.resource_types import MERGEABLE
from pipelines.records.advice import advice_of
from pipelines.records.left_out import LeftOut
from pipelines.records.values import partial_date


class ReasonKind(StrEnum):
    """What a reason is about: where the plan's page shows it, and under what the losses count it. None is ever renamed."""

    UNDECIDED = "undecided"
    """A person has to decide about the record."""
    RECORDS = "records"
    """The record cannot be sent."""
    DATES = "dates"
    IDENTIFIERS = "identifiers"
    REFERENCES = "references"
    """The record goes without a reference to another one."""
    FIELDS = "fields"
    """Any other value that is not sent."""
    FILES = "files"
    WRITES = "writes"
    """The service keeps something otherwise than it was sent."""
    STEPS = "steps"
    """A step of the migration did not write something, or left it."""
    TARGET = "target"
    """The target is otherwise than the plan."""


class Work(IntEnum):
    """What a person has to do about a reason; in this order the table of issues has its last lines."""

    EACH = 0
    """Something in each record, so that each is a line."""
    ONCE = 1
    """One thing for all records with the field, so that they are one line."""
    NOTHING = 2


class Reason(NamedTuple):
    """One reason. In its texts, names in braces stand for what `filled` puts there."""

    code: str
    problem: str
    suggestion: str = ""
    choice: str = ""
    """Of a conflict: what to do, in the words of the page's buttons."""
    decisions: tuple[Decision, ...] = ()
    """Of a conflict: what can settle it, in the order of the page."""
    work: Work = Work.EACH
    kind: ReasonKind = ReasonKind.FIELDS

    def filled(self, **words: Any) -> Self:
        """The same with these words in its texts."""
        return self._replace(problem=self.problem.format(**words), suggestion=self.suggestion.format(**words))


TWINS, FILE = "twins", "file"
NO_ID, NOTHING_TO_SEND, TASK_COMPLETED = "no_id", "nothing_to_send", "task_completed"
LOCATION_MISSING, AT_MISSING_LOCATION = "location_missing", "at_missing_location"
REFERENCE_MISSING, REQUIRED_MISSING = "reference_missing", "required_missing"
REQUIRED_NOT_TAKEN = "required_not_taken"
MISSING, DIFFERING, DUPLICATED, UNREAD = "missing", "differing", "duplicated", "unread"

_MERGE = "Write merge to merge them, with the number of the one that remains (merge 123) if you prefer one. No undo can split them."
_WHICH = "Compare them. Write match and the number of the right one, create if none of them is right, or skip to leave the record out."
_WHOSE = "Write source to replace the values of the target, or target to keep them."
_RIGHT_SIDE = "Say which side is right."
_KEPT = "Nothing has to be done: every backup keeps it."
_BY_HAND = f"{_KEPT} If people need it, enter it in the target by hand."
_WHOLE_DATE = "Write year, month and day, such as 1984-06-08, in the source"

ONE = (Decision.SOURCE, Decision.TARGET, Decision.MATCH, Decision.CREATE, Decision.SKIP)
"""Decisions about a record that is there."""
_MANY = (Decision.SOURCE, Decision.TARGET, Decision.MATCH, Decision.MERGE, Decision.CREATE, Decision.SKIP)
_GONE = (Decision.MATCH, Decision.CREATE, Decision.SKIP)

_TABLE = {
    ReasonKind.UNDECIDED: (
        Reason(
            "several_targets",
            "Several records of the target fit.",
            _WHICH,
            "Choose the record of the target that it is. Create it if none of them is right, or leave it out.",
            _MANY,
        ),
        Reason(
            TWINS,
            "The target has its record more than once, under the same name.",
            f"{_MERGE} An empty cell leaves them as they are.",
            "Merge them if they are one; nothing can split them again. Without a decision they stay as they are.",
            _MANY,
        ),
        Reason(
            "merge_unclear",
            "The target's description does not say clearly how two records are merged.",
            "Merge them in the library by hand, and clear the decision.",
            "Merge them in the library by hand, and clear the decision.",
            _MANY,
        ),
        Reason(
            "merge_into_another",
            "The record of the target that was decided to remain is none of those with this name.",
            "Write merge and the number of one that has it, or clear the decision.",
            "Choose one of the records with this name to remain, or clear the decision.",
            _MANY,
        ),
        Reason(
            "several_sources",
            "This record and others of the source fit the same record of the target.",
            "It may have been catalogued twice. Write match and the number for the right one, and skip or create for the others.",
            "It may have been catalogued twice. Say of one that it is this record; leave the others out, or create them.",
            ONE,
        ),
        Reason(
            "identifiers_disagree",
            "A record of the target fits, but other identifiers say that it is another publication.",
            "Write match and the number if it is the same publication, and create if it is another one.",
            "It is this record if it is the same publication. Create it if it is another one.",
            ONE,
        ),
        Reason(
            "deleted_in_target",
            "An earlier plan wrote or found it, and somebody has deleted it in the target.",
            "Write skip to leave it deleted, or create to create it again.",
            "Leave it out, and it stays deleted; or create it again.",
            _GONE,
        ),
        Reason(
            "decided_is_missing",
            "The target has no record of the number that was decided.",
            "Write match and the right number, create if there is none, or skip to leave it out.",
            "Choose another record, create it, or leave it out.",
            _GONE,
        ),
        Reason(
            "edited_in_target",
            "Somebody has changed it in the target since it was written there.",
            _WHOSE,
            _RIGHT_SIDE,
            ONE,
        ),
        Reason(
            "edited_in_both",
            "Both libraries, or one of them and what is moved of it, have changed since it was written there.",
            _WHOSE,
            _RIGHT_SIDE,
            ONE,
        ),
        Reason(
            "fields_differ",
            "It is in the target already, with other values.",
            f"{_WHOSE} Write create if it is another record.",
            f"{_RIGHT_SIDE} Create it if it is another record.",
            ONE,
        ),
    ),
    ReasonKind.RECORDS: (
        Reason(
            NOTHING_TO_SEND,
            "No field of the record has a form that version 3 takes.",
            "Give it in the source what version 3 takes, such as a title or a name; the next plan will move the record.",
        ),
        Reason(
            LOCATION_MISSING,
            "The target has no location of this name, and no program can create one there.",
            "Create it in the target, with the same name; the next plan will move the copies that stand there.",
        ),
        Reason(
            AT_MISSING_LOCATION,
            "The target does not have the location where it stands.",
            "Create the location in the target, with the same name; the next plan will move the copy.",
        ),
        Reason(
            REFERENCE_MISSING,
            "It refers to a record that the target does not have and this plan does not create.",
            "Look up that record in this plan, or move its resource, too. If the source does not have it either, `values` in the line of "
            "the mapping file says which numbers stand for no record. The next plan will move this record.",
        ),
        Reason(
            TASK_COMPLETED,
            "The task is completed, and nothing says which request completes one, so it would be open again.",
            f"{_KEPT} Where the target's description has that request, `bookferry migrate map` writes it into the mapping file.",
        ),
        Reason(
            NO_ID,
            "It has no id, so it cannot be sent.",
            "Enter it in the target by hand; the backup has it.",
        ),
        Reason(
            REQUIRED_MISSING,
            "The target's description demands a field that this record does not have.",
            "Fill the field in the source, or one that nobody documents with `fill` in the mapping file; the next plan will move the "
            "record. `bookferry describe` shows what the target demands.",
        ),
        Reason(
            REQUIRED_NOT_TAKEN,
            "The target's description demands a field, and does not take the value that this record has there.",
            "The value is among those that are not moved, with the reason. Correct it in the source; the next plan will move the record.",
        ),
    ),
    ReasonKind.DATES: (
        Reason(
            LeftOut.NO_DAY,
            "This is not a complete date, and version 3 takes only complete dates, so it is not moved.",
            f"{_WHOLE_DATE}; the next plan will move it.",
        ),
        Reason(
            LeftOut.PART_OF_DATE,
            "This is not a complete date, and version 3 takes only complete dates, so it is not moved.",
            f"{_WHOLE_DATE}, or make the plan with --first-days; it will move it.",
        ),
    ),
    ReasonKind.REFERENCES: (
        Reason(
            LeftOut.NO_RECORD,
            "No record of the target is known to be the one with this number, and this plan does not create it.",
            "Look up that record in this plan: it may wait for your decision. Once the target has it, the next plan will refer to it.",
        ),
        Reason(
            LeftOut.NO_USER,
            "It names a user whom this plan did not find in the target.",
            "Move the users, too (--resources users); the next plan will then name the right one.",
            work=Work.ONCE,
        ),
        Reason(
            LeftOut.NO_ORGANIZATION,
            "It names an organization by its number in the source, and no program can list the organizations of the target.",
            f"{_KEPT} If it matters, enter it in the target by hand.",
            work=Work.ONCE,
        ),
        Reason(
            LeftOut.NO_CATEGORY,
            "It names a category without a name, and numbers count within one library only.",
            "Give the category a name in the source; the next plan will move it.",
        ),
        Reason(
            LeftOut.LINK,
            "It refers to another record by its number in the source, and this plan does not move that link.",
            f"{_KEPT} If it matters, make the link in the target by hand.",
            work=Work.ONCE,
        ),
        Reason(
            LeftOut.UNKNOWN_REFERENCE,
            "It may name records by their numbers or codes in the source, or have these by chance, or be a word that the target does not "
            "have, and nobody has said what it is there, so it is not moved: the same numbers are other records in the target.",
            f"{_KEPT} If it matters: `bookferry migrate map` asks which records those are, if any. A form that it cannot send is left out "
            "without a question: enter that in the target by hand.",
            work=Work.ONCE,
        ),
    ),
    ReasonKind.FIELDS: (
        Reason(
            LeftOut.NOT_SHOWN,
            "Nothing shows that the target has such a field, neither its description nor its records, so it is not moved.",
            f"{_KEPT} `bookferry describe TENANT` shows which fields the target has; once a publication there has this one, the next plan "
            "will move it.",
            work=Work.NOTHING,
        ),
        Reason(
            LeftOut.UNKNOWN_PART,
            "Only the documented parts of this field are moved, and this is none of them.",
            _BY_HAND,
            work=Work.NOTHING,
        ),
        Reason(
            LeftOut.FILLED_BY_SERVICE,
            "By its name, the service fills this field itself, so it is not moved.",
            f"{_KEPT} If people write it, move it to `same` in the mapping file.",
            work=Work.NOTHING,
        ),
        Reason(
            LeftOut.DEPRECATED,
            "Version 2 announces this field as deprecated, so it is not moved.",
            f"{_KEPT} If people need it, enter it in a field that version 3 has.",
            work=Work.NOTHING,
        ),
        Reason(
            LeftOut.NOT_DESCRIBED,
            "The target's own description does not have this field among those that it takes, so it is not moved.",
            f"{_KEPT} `bookferry describe` shows what the target takes.",
            work=Work.NOTHING,
        ),
        Reason(
            LeftOut.READ_ONLY,
            "The target's description shows this field, but no request takes it, so it is not moved.",
            _KEPT,
            work=Work.NOTHING,
        ),
        Reason(
            LeftOut.SIGNED,
            "It has signed addresses of files, which change in every response, so it is not moved.",
            _KEPT,
            work=Work.NOTHING,
        ),
        Reason(
            LeftOut.NOT_A_CHOICE,
            "The target's own description does not have this value among those that it takes, so it is not moved.",
            "Change the value in the source to one that the target takes (`bookferry describe` lists them), or name it in `values` in the "
            "mapping file; the next plan will move it.",
        ),
        Reason(
            LeftOut.OTHER_TYPE,
            "The target's own description takes values of another type or form in this field, so this one is not moved.",
            "Change the value in the source to one of that type or form (`bookferry describe` shows it); the next plan will move it.",
        ),
        Reason(
            LeftOut.NOT_MAPPED,
            "The mapping file of the two libraries does not send this field, so it is not moved.",
            f"{_KEPT} If it should be moved, name it in that file; `bookferry migrate map` adds fields that are new.",
            work=Work.NOTHING,
        ),
        Reason(
            LeftOut.BY_ACTION,
            "A request of its own sets this after a record is created, and this record is there already, without it.",
            "If it matters, set it in the target by hand.",
        ),
        Reason(
            LeftOut.NOT_SENDABLE,
            "It is nested too deeply to be sent, or has a number of over 64 bits, the signed address of a file, or a name with a slash.",
            _BY_HAND,
        ),
        Reason(
            LeftOut.BESIDE_LINK,
            "At most the ids of a list at an address of its own are moved, so what its entries say beside them is not.",
            _BY_HAND,
            work=Work.NOTHING,
        ),
        Reason(
            LeftOut.FIRST_DAY,
            "This is only a year or a month, and version 3 takes only complete dates: it is sent as its first day, {day}, unless the "
            "target has a day of that year or month already.",
            "Write year, month and day in the source; the next plan will send them.",
        ),
        Reason(
            LeftOut.OTHER_FORM,
            "It does not have the form that version 3 takes, so it is not moved.",
            "Correct it in the source; the next plan will move it.",
        ),
        Reason(
            LeftOut.UNKNOWN_IDENTIFIER,
            "It looks like an identifier of a type that Bookferry does not know, so it is not moved.",
            "If it is one, describe its type in bookferry.toml: {table}. The next plan will move it, without a new backup.",
            work=Work.ONCE,
        ),
    ),
    ReasonKind.FILES: (
        Reason(
            FILE,
            "Its content could not be fetched.",
            "Open the file in the library. If it opens, the next backup fetches it, unless the snapshot has it, packed: upload that in the "
            "target by hand. If not, upload it again, or remove it.",
        ),
    ),
    ReasonKind.WRITES: (
        Reason(
            "kept_otherwise",
            "The target keeps another value than was sent.",
            "Look at the record in the target, and put right there what differs.",
        ),
    ),
    ReasonKind.STEPS: (
        Reason("failed", "It could not be written."),
        Reason("refused", "The service refused it."),
        Reason("parked", "It is unknown whether it was written; a person must look."),
        Reason("unanswered", "Its response was lost; applying the plan again looks it up."),
        Reason("left", "It was not taken back."),
        Reason(Action.DELETE, "The plan created it."),
        Reason(Action.PATCH, "Fields get their old values back."),
        Reason(FileAction.DETACH, "The plan attached it."),
    ),
    ReasonKind.TARGET: (
        Reason(MISSING, "It is not in the target."),
        Reason(DIFFERING, "It differs from the plan."),
        Reason(DUPLICATED, "It is in the target more than once."),
        Reason(UNREAD, "Its bytes could not be fetched, so that nothing is proved of it."),
    ),
}

DECIDED = Reason(
    "decided", "Decided before; clear the last cell to be asked again.", decisions=ONE, kind=ReasonKind.UNDECIDED
)
"""Of a decision about a record that is no conflict any more."""

REASONS = {reason.code: reason._replace(kind=kind) for kind, reasons in _TABLE.items() for reason in reasons}
"""Code → reason. Identifiers that are not sent have the rule that they break for a reason (`records.advice`)."""


def reason_unsent(code: str, path: str, text: str | None) -> Reason:
    """The reason of a value that is not sent. `text`: the value, where it is a text."""
    if code not in REASONS:
        return Reason(code, *advice_of(code, path), kind=ReasonKind.IDENTIFIERS)
    partial = partial_date(text) if text is not None else None
    table = f"[identifiers.{path.lower()}]" + ("" if path.islower() else f' with fields = ["{path}"]')
    return REASONS[code].filled(day=partial.first if partial else "", table=table)


def kind_of(code: str) -> ReasonKind:
    """What a code is about."""
    return REASONS[code].kind if code in REASONS else ReasonKind.IDENTIFIERS


def work_of(code: str) -> Work:
    """What a person has to do about a code."""
    return REASONS[code].work if code in REASONS else Work.EACH


def reason_of(code: str | None, resource: str) -> Reason:
    """The reason of a row of a plan: where the service can merge several records of one name, it says so."""
    reason = REASONS[code or ""]
    if code == "several_targets" and resource in MERGEABLE:
        return reason._replace(
            problem="Several records of the target have this name.", suggestion=f"{_MERGE} Or: {_WHICH}"
        )
    return reason


def decisions_about(reason: Reason, resource: str) -> list[Decision]:
    """What can settle a conflict of a record of a resource."""
    return [decision for decision in reason.decisions if decision != Decision.MERGE or resource in MERGEABLE]
