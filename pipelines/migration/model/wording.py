"""The texts about a plan: its summary in a few lines, and words for every action and every evidence of a match."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from pipelines.humanize import counted, duration, size
from pipelines.inventory import LAST_DAY_OF_V2, noun, records_in_words
from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import PlanFacts

ACTIONS = {
    Action.CREATE: "created",
    Action.PATCH: "changed",
    Action.MERGE: "merged with others of the name",
    Action.UNCHANGED: "there already",
    Action.SKIPPED: "left out by a person's decision",
    Action.CONFLICT: "to be decided by a person",
    Action.QUARANTINED: "cannot be sent",
}
"""Action → words, in the order of the bars and columns of the page."""

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


def headline(facts: PlanFacts, now: datetime) -> list[str]:
    """The summary of a plan in a few lines. `now`: when an apply would begin, in the time zone for its end."""
    lines = [_records(resource, facts.counts.get(resource, {})) for resource in facts.resources]
    if facts.unfit:
        lines.append(f"{counted(facts.unfit, 'record')} without an id cannot be sent.")
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
        f"{count:,} {singular if count == 1 else plural}"
        for action, singular, plural in (
            (Action.MERGE, "is merged with others of its name", "are merged with others of their name"),
            (Action.UNCHANGED, "is there already", "are there already"),
            (Action.CONFLICT, "waits for a decision", "wait for a decision"),
            (Action.SKIPPED, "is left out, as decided", "are left out, as decided"),
            (Action.QUARANTINED, "cannot be sent", "cannot be sent"),
        )
        if (count := counts.get(action, 0))
    ]
    return f"{'; '.join([text, ', '.join(rest)]) if rest else text}."
