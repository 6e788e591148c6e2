"""The texts about a plan: its summary in a few lines, and words for every action, every evidence of a match and every reason.

The texts about identifiers are in `records/advice.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from pipelines.humanize import counted, duration, size
from pipelines.inventory import LAST_DAY_OF_V2
from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import PlanFacts
from pipelines.migration.model.resource_types import MERGEABLE
from pipelines.records.advice import Advice

ACTIONS = {
    Action.CREATE: "created",
    Action.PATCH: "changed",
    Action.MERGE: "merged with others of the name",
    Action.UNCHANGED: "there already",
    Action.CONFLICT: "to be decided by a person",
    Action.SKIPPED: "left out by a person's decision",
    Action.QUARANTINED: "cannot be sent",
}
"""Action → words."""

EVIDENCE = {
    "decision": "a person's decision",
    "journal": "an earlier migration",
    "id": "the number of the record",
    "identifier": "an identifier (DOI, ISBN)",
    "content": "the whole content",
    "fingerprint": "title, year, first author",
    "name": "a name, address or barcode",
}
"""Evidence that two records are the same → words, short enough for a plot."""

_WHICH = "Compare them. Write match and the number of the right one, create if none of them is right, or skip to leave the record out."
_MERGE = "Write merge to merge them, with the number of the one that remains (merge 123) if you prefer one. No undo can split them."
_WHOSE = "Write source to replace the values of the target, or target to keep them."

_SEVERAL_TWINS = Advice("Several records of the target have this name.", f"{_MERGE} Or: {_WHICH}")

TWINS = "twins"
"""Reason of a row whose record the target has more than once: a merge is proposed."""

REASONS = {
    "several_targets": Advice("Several records of the target fit.", _WHICH),
    TWINS: Advice(
        "The target has its record more than once, under the same name.",
        f"{_MERGE} An empty cell leaves them as they are.",
    ),
    "merge_unclear": Advice(
        "The target's description does not say clearly how two records are merged.",
        "Merge them in the library by hand, and clear the decision.",
    ),
    "merge_into_another": Advice(
        "The record of the target that was decided to remain is none of those with this name.",
        "Write merge and the number of one that has it, or clear the decision.",
    ),
    "several_sources": Advice(
        "This record and others of the source fit the same record of the target.",
        "It may have been catalogued twice. Write match and the number for the right one, and skip or create for the others.",
    ),
    "identifiers_disagree": Advice(
        "A record of the target fits, but other identifiers say that it is another publication.",
        "Write match and the number if it is the same publication, and create if it is another one.",
    ),
    "deleted_in_target": Advice(
        "An earlier migration wrote it, and somebody has deleted it in the target since.",
        "Write skip to leave it deleted, or create to create it again.",
    ),
    "decided_is_missing": Advice(
        "The target has no record of the number that was decided.",
        "Write match and the right number, create if there is none, or skip to leave it out.",
    ),
    "edited_in_target": Advice(
        "Somebody has changed it in the target since it was written there.",
        _WHOSE,
    ),
    "edited_in_both": Advice(
        "Both libraries have changed it since it was written into the target.",
        _WHOSE,
    ),
    "fields_differ": Advice(
        "It is in the target already, with other values.",
        f"{_WHOSE} Write create if it is another record.",
    ),
    "nothing_to_send": Advice(
        "No field of the record has a form that version 3 takes.",
        "Give it in the source what version 3 takes, such as a title or a name; the next plan will move the record.",
    ),
    "location_missing": Advice(
        "The target has no location of this name, and no program can create one there.",
        "Create it in the target, with the same name; the next plan will move the copies that stand there.",
    ),
    "at_missing_location": Advice(
        "The target does not have the location where it stands.",
        "Create the location in the target, with the same name; the next plan will move the copy.",
    ),
    "reference_missing": Advice(
        "It refers to a record that the target does not have and this plan does not create.",
        "Look up that record in this plan, or move its resource, too; the next plan will move this record.",
    ),
    "task_completed": Advice(
        "The task is completed. No program can create a completed task, so it would be open again.",
        "Nothing has to be done: every backup keeps it.",
    ),
    "no_number": Advice(
        "It has no id that is a whole number, so it cannot be sent.",
        "Enter it in the target by hand; the backup has it.",
    ),
    "required_missing": Advice(
        "The target's description demands a field that this record does not have.",
        "Fill the field in the source; the next plan will move the record. `bookferry describe` shows what the target demands.",
    ),
    "required_not_taken": Advice(
        "The target's description demands a field, and does not take the value that this record has there.",
        "The value is among those that are not moved, with the reason. Correct it in the source; the next plan will move the record.",
    ),
}
"""Why a record is a conflict or quarantined → what is wrong, and what to do."""


def advice_on(reason: str | None, resource: str = "") -> Advice:
    """The text for a reason, also for one of a later version. `resource`: of records that may be merged, it says so."""
    if reason == "several_targets" and resource in MERGEABLE:
        return _SEVERAL_TWINS
    known = REASONS.get(reason or "")
    return known or Advice(
        f"{(reason or 'unknown').replace('_', ' ').capitalize()}.", "Look at the record in both libraries."
    )


def evidence(matched_by: str) -> str:
    """The evidence that two records are the same, in words."""
    return EVIDENCE.get(matched_by, matched_by.replace("_", " "))


_SINGULAR = {"hard_copies": "hard copy", "authorities": "authority"}


def headline(facts: PlanFacts, now: datetime) -> list[str]:
    """The summary of a plan in a few lines. `now`: when an apply would begin, in the time zone for its end."""
    lines = [_records(resource, facts.counts.get(resource, {})) for resource in facts.resources]
    if facts.unfit:
        lines.append(f"{counted(facts.unfit, 'record')} without an id that is a whole number cannot be sent.")
    files = facts.files
    if files.upload:
        covers = f", {files.covers:,} of them covers" if files.covers else ""
        lines.append(f"{counted(files.upload, 'file')} will be uploaded ({size(files.bytes)}{covers}).")
    if merges := facts.count(Action.MERGE):
        lines.append(
            f"{counted(merges, 'record')} will get others of the same name merged into it, which no undo can split."
        )
    if facts.mails:
        lines.append(f"{counted(facts.mails, 'person')} may get an e-mail from the service.")
    return [*lines, "There is nothing to write." if facts.empty else timing(facts, now)]


def timing(facts: PlanFacts, now: datetime) -> str:
    """How long an apply takes and when it ends; for a source of version 2 also how many days that is before the end of version 2."""
    finish = finishes_at(facts, now)
    text = (
        f"{counted(facts.requests, 'request')}, {duration(facts.minutes * 60)} at {facts.requests_per_minute:,} a minute: "
        f"done on {finish:%Y-%m-%d %H:%M} {finish.tzname() or ''}".rstrip()
    )
    return f"{text}; {margin(facts, now)}." if facts.source.api == "v2" else f"{text}."


def margin(facts: PlanFacts, now: datetime) -> str:
    """How many days the end of the apply is before or after the end of version 2."""
    days = days_left(facts, now)
    if days == 0:
        return "that is the last day of version 2"
    return f"{counted(abs(days), 'day')} {'before' if days > 0 else 'after'} version 2 ends"


def finishes_at(facts: PlanFacts, now: datetime) -> datetime:
    """The end of an apply that begins now and has the whole budget of the target."""
    return now + timedelta(minutes=facts.minutes)


def days_left(facts: PlanFacts, now: datetime) -> int:
    """Whole days between the end of the apply and the last day of version 2; negative where it is too late."""
    return (LAST_DAY_OF_V2 - finishes_at(facts, now).date()).days


def noun(resource: str) -> str:
    """The word for one record of a resource."""
    return _SINGULAR.get(resource, resource.removesuffix("s").replace("_", " "))


def plural(resource: str) -> str:
    """The word for records of a resource."""
    return resource.replace("_", " ")


def records_in_words(resource: str, count: int) -> str:
    """A number of records of a resource: `1 hard copy`, `1,090 users`."""
    return f"{count:,} {noun(resource) if count == 1 else plural(resource)}"


def _records(resource: str, counts: Mapping[str, int]) -> str:
    """A sentence on one resource: 5,445 publications will be created and 12 changed; 20 are there already, 3 wait for a decision."""
    created, changed = counts.get(Action.CREATE, 0), counts.get(Action.PATCH, 0)
    records = records_in_words(resource, created or changed)
    if created and changed:
        text = f"{records} will be created and {changed:,} changed"
    elif created or changed:
        text = f"{records} will be {'created' if created else 'changed'}"
    else:
        text = f"No {noun(resource)} will be created or changed"
    rest = [
        f"{count:,} {one if count == 1 else many}"
        for action, one, many in (
            (Action.MERGE, "is merged with others of its name", "are merged with others of their name"),
            (Action.UNCHANGED, "is there already", "are there already"),
            (Action.CONFLICT, "waits for a decision", "wait for a decision"),
            (Action.SKIPPED, "is left out, as decided", "are left out, as decided"),
            (Action.QUARANTINED, "cannot be sent", "cannot be sent"),
        )
        if (count := counts.get(action, 0))
    ]
    return f"{'; '.join([text, ', '.join(rest)]) if rest else text}."
