"""What to tell people of a plan: words for every action, every way in which a match was found, and every reason why a person must decide.

The one place for these texts, as `records/advice.py` is for identifiers.
"""

from __future__ import annotations

from pipelines.migration.plans import CONFLICT, CREATE, PATCH, QUARANTINED, SKIPPED, UNCHANGED
from pipelines.records.advice import Advice

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
    "decision": "a person said so",
    "journal": "an earlier migration wrote it",
    "id": "the same number in the same library",
    "identifier": "an identifier, such as a DOI or the ISBN of a book",
    "content": "everything in it is the same",
    "fingerprint": "title, year and first author",
}
"""What told that two records are one → the same in words."""

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
    "edited_in_target": Advice(
        "Somebody has changed it in the target since it was written there.",
        _WHOSE,
    ),
    "fields_differ": Advice(
        "It is in the target already, with other values.",
        f"{_WHOSE} Write create if it is another publication.",
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
