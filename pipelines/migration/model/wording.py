"""What to tell people of a plan: its sum in a few lines, and words for every action, every evidence of a match and every reason.

The one place for these texts, as `records/advice.py` is for identifiers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from pipelines.humanize import counted, duration, size
from pipelines.inventory import LAST_DAY_OF_V2
from pipelines.migration.model.plan import CONFLICT, CREATE, PATCH, QUARANTINED, SKIPPED, UNCHANGED, PlanFacts
from pipelines.migration.model.resource_types import REFERENCES
from pipelines.publication_fields import IDENTIFIER_FIELDS, WRITTEN
from pipelines.records.advice import Advice, advice_of
from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.records.identifiers.verdicts import GOOD

ACTIONS = {
    CREATE: "created",
    PATCH: "changed",
    UNCHANGED: "there already",
    CONFLICT: "to be decided by a person",
    SKIPPED: "left out, as a person decided",
    QUARANTINED: "cannot be sent",
}
"""What is done with a record → the same in words."""

EVIDENCE = {
    "decision": "a person's decision",
    "journal": "an earlier migration",
    "id": "the number of the record",
    "identifier": "an identifier (DOI, ISBN)",
    "content": "all of the content",
    "fingerprint": "title, year, first author",
    "name": "a name, address or barcode",
}
"""What told that two records are one → the same in words, short enough for a plot."""

_WHICH = (
    "Compare them. Write match and the number of the right one, create if it is none of them, or skip to leave it out."
)
_WHOSE = "Write source to replace what stands there, or target to leave that as it is."

REASONS = {
    "several_targets": Advice("Several records of the target fit.", _WHICH),
    "several_sources": Advice(
        "This record and others of the source fit the same record of the target.",
        "Perhaps it was catalogued twice. Write match and the number for the right one, and skip or create for the others.",
    ),
    "identifiers_disagree": Advice(
        "A record of the target fits, but other identifiers say that it is another publication.",
        "Write match and the number if it is the same all the same, and create if it is another.",
    ),
    "deleted_in_target": Advice(
        "An earlier migration wrote it, and somebody has deleted it in the target since.",
        "Write skip to leave it deleted, or create to make it again.",
    ),
    "decided_is_missing": Advice(
        "The target has no record of the number that was decided.",
        "Write match and the right number, create if there is none, or skip to leave it out.",
    ),
    "edited_in_target": Advice(
        "Somebody has changed it in the target since it was written there.",
        _WHOSE,
    ),
    "fields_differ": Advice(
        "It is in the target already, with other values.",
        f"{_WHOSE} Write create if it is another publication.",
    ),
    "nothing_to_send": Advice(
        "Nothing of the record has a form that version 3 takes.",
        "Enter a title in the source; the next plan has it then.",
    ),
    "location_missing": Advice(
        "The target has no location of this name, and no program can make one there.",
        "Make it in the target, with the same name; the next plan moves the copies that stand there.",
    ),
    "at_missing_location": Advice(
        "The location where it stands is not in the target.",
        "Make that in the target, with the same name; the next plan moves the copy.",
    ),
    "reference_missing": Advice(
        "A record that it refers to is not in the target, and is not created there by this plan.",
        "See what this plan says of that record, or move its resource, too; the next plan moves this one.",
    ),
    "task_completed": Advice(
        "The task is done, and nobody shows how one is made that is: it would be on somebody's list again.",
        "Nothing has to be done: every backup keeps it.",
    ),
}
"""Why a record is a conflict, or cannot be sent → what is wrong, and what to do."""


def advice_on(reason: str | None) -> Advice:
    """What to tell of a reason; also of one that a later version gave."""
    known = REASONS.get(reason or "")
    return known or Advice(
        f"{(reason or 'unknown').replace('_', ' ').capitalize()}.", "Look at the record in both libraries."
    )


def evidence(matched_by: str) -> str:
    """What told that two records are one."""
    return EVIDENCE.get(matched_by, matched_by.replace("_", " "))


NO_PLACE = Advice(
    "Version 3 has no place for this, so it is not moved.",
    "Nothing has to be done: every backup keeps it. What people need has to go into a field that version 3 has.",
)
NO_RECORD = Advice(
    "The record with this number is not in the target, and is not created there by this plan.",
    "See what this plan says of that record; the next plan refers to it once it is there.",
)
NO_USER = Advice(
    "It names a user whom the target does not have, as far as this plan knows.",
    "Move the users, too (--resources users); the next plan leads it to the right one.",
)
NO_ORGANIZATION = Advice(
    "It names an organization by its number in the source, and no program can list those of the target.",
    "Nothing has to be done: every backup keeps it. Where it matters, a person enters it in the target.",
)
NO_DAY = Advice(
    "This is no day, and version 3 takes nothing less, so it is not moved.",
    "Write it as year, month and day, such as 1984-06-08, in the source; the next plan moves it then.",
)
OTHER_FORM = Advice(
    "It does not have the form that version 3 takes, so it is not moved.",
    "Correct it in the source; the next plan has it then.",
)
NO_IDENTIFIER = Advice(
    "They break the rules of their type, so they are not sent.",
    "Each is a line in issues.tsv that tells what is wrong. Correct it in the source, or have all sent as they stand: "
    "send_invalid_identifiers in bookferry.toml.",
)

NAMED = {"contributor": NO_USER, "organization": NO_ORGANIZATION}
"""References of publications that cannot be led into the target."""

_ONE_FIELD = re.compile(r"(\w+)(?:\[\d*\])?'*")
"""A field, or one entry of it; what has more to it is something that a known entry holds beside what is known."""

_SINGULAR = {"hard_copies": "hard copy", "authorities": "authority"}


def advice_on_unsent(path: str, value: object) -> Advice:
    """What to tell of a value that is not moved; without one, of many under that path."""
    found = _ONE_FIELD.fullmatch(path)
    name = found[1] if found else ""
    if name in IDENTIFIER_FIELDS and isinstance(value, str):
        read = next((one for one in STANDARD_KINDS.read(name, value) if one.verdict not in GOOD), None)
        return advice_of(read.rule, read.type) if read else OTHER_FORM
    if name in IDENTIFIER_FIELDS:
        return NO_IDENTIFIER
    if name in REFERENCES:
        return NO_RECORD
    if name in NAMED:
        return NAMED[name]
    if name == "published_on":
        return NO_DAY
    return OTHER_FORM if name in WRITTEN else NO_PLACE


def headline(facts: PlanFacts, now: datetime) -> list[str]:
    """What a plan comes to, in a few lines; `now` is when it would begin, in the zone in which its end is told."""
    lines = [_records(resource, facts.counts.get(resource, {})) for resource in facts.resources]
    files = facts.files
    if files.upload:
        covers = f", {files.covers:,} of them covers" if files.covers else ""
        lines.append(f"{counted(files.upload, 'file')} will be uploaded ({size(files.bytes)}{covers}).")
    if files.missing:
        lines.append(f"{counted(files.missing, 'file')} cannot be moved: the snapshot lacks the content.")
    if facts.mails:
        lines.append(f"{counted(facts.mails, 'person')} may get an e-mail from the service.")
    return [*lines, "There is nothing to write." if facts.empty else timing(facts, now)]


def timing(facts: PlanFacts, now: datetime) -> str:
    """How long it takes, when it is done, and how long that is before the end of version 2 where the source depends on that."""
    finish = finishes_at(facts, now)
    told = (
        f"{counted(facts.requests, 'request')}, {duration(facts.minutes * 60)} at {facts.requests_per_minute:,} a minute: "
        f"done on {finish:%Y-%m-%d %H:%M} {finish.tzname() or ''}".rstrip()
    )
    return f"{told}; {margin(facts, now)}." if facts.source.api == "v2" else f"{told}."


def margin(facts: PlanFacts, now: datetime) -> str:
    """How the end of the work stands to that of version 2."""
    left = days_left(facts, now)
    if left == 0:
        return "that is the last day of version 2"
    return f"{counted(abs(left), 'day')} {'before' if left > 0 else 'after'} version 2 ends"


def finishes_at(facts: PlanFacts, now: datetime) -> datetime:
    """When it is done if it begins now and has the target's budget for itself."""
    return now + timedelta(minutes=facts.minutes)


def days_left(facts: PlanFacts, now: datetime) -> int:
    """Whole days between the end of the work and the last day of version 2; less than none where it comes too late."""
    return (LAST_DAY_OF_V2 - finishes_at(facts, now).date()).days


def noun(resource: str) -> str:
    """One record of a resource."""
    return _SINGULAR.get(resource, resource.removesuffix("s").replace("_", " "))


def plural(resource: str) -> str:
    """Records of a resource."""
    return resource.replace("_", " ")


def _records(resource: str, counts: Mapping[str, int]) -> str:
    """One resource in a sentence: 5,445 publications will be created and 12 changed; 20 are there already, 3 wait for a decision."""
    created, changed = counts.get(CREATE, 0), counts.get(PATCH, 0)
    what = noun(resource) if (created or changed) == 1 else plural(resource)
    if created and changed:
        told = f"{created:,} {what} will be created and {changed:,} changed"
    elif created or changed:
        told = f"{created or changed:,} {what} will be {'created' if created else 'changed'}"
    else:
        told = f"No {noun(resource)} will be created or changed"
    rest = [
        f"{count:,} {one if count == 1 else many}"
        for action, one, many in (
            (UNCHANGED, "is there already", "are there already"),
            (CONFLICT, "waits for a decision", "wait for a decision"),
            (SKIPPED, "is left out, as decided", "are left out, as decided"),
            (QUARANTINED, "cannot be sent", "cannot be sent"),
        )
        if (count := counts.get(action, 0))
    ]
    return f"{'; '.join([told, ', '.join(rest)]) if rest else told}."
