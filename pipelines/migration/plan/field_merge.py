"""The three-way merge of one field: the source now, the target now, and what an earlier plan wrote there.

A patch adds what the target lacks. It replaces a value only where the journal shows that an earlier plan wrote this value, and where
it is unedited since. Every other difference is a conflict for a person: the service has no version of a record that a write could name.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from pipelines.migration.model.actions import Decision
from pipelines.migration.model.comparable import digest
from pipelines.records.values import compact_json, decode_json


class FieldVerdict(StrEnum):
    """What happens to a field."""

    SAME = "same"
    """Both libraries agree, or nothing has changed on either side since an earlier plan wrote it and the service kept it otherwise."""
    PATCH = "patch"
    """The target gets the source's value."""
    KEEP = "keep"
    """The target keeps its value."""
    EDITED = "edited"
    """Somebody edited in the target what an earlier plan wrote; a person must decide."""
    EDITED_IN_BOTH = "edited in both"
    """The source has changed since an earlier plan wrote it, too; a person must decide."""
    CONFLICT = "conflict"
    """Both sides have different values; a person must decide."""


CONFLICTS = {
    FieldVerdict.EDITED: "edited_in_target",
    FieldVerdict.EDITED_IN_BOTH: "edited_in_both",
    FieldVerdict.CONFLICT: "fields_differ",
}
"""Verdict of a field about which a person must decide → the reason of its record; of several, the first one counts."""


class WrittenField(NamedTuple):
    """What an earlier plan wrote: the digest of what was sent, and of what the service then had."""

    wanted: str | None
    held: str | None
    sent: bool = True
    """Whether it was sent; else the service filled it itself, and nobody edits what we wrote."""


def merge_field(  # noqa: C901, PLR0911  one line per rule
    source: str | None,
    target: str | None,
    *,
    written: WrittenField | None = None,
    decision: Decision | None = None,
    overwrite: bool = False,
    is_set: bool = False,
    guarded: bool = False,
    begins: str = "",
) -> FieldVerdict:
    """The verdict for one field.

    `source`, `target`: JSON as it is compared, none where the field is empty. `overwrite`: the source's value counts wherever it has one.
    `is_set`: a JSON array without order. `guarded`: never added to a record that exists. `begins`: the year or month of
    which the source's date is the first day; a day within it, in the target, says more.
    """
    if source == target:
        return FieldVerdict.SAME
    if begins and target is not None and target.startswith(f'"{begins}'):
        return FieldVerdict.KEEP
    if decision == Decision.SOURCE:
        return FieldVerdict.PATCH
    if written is not None and written[:2] == (digest(source), digest(target)):
        return FieldVerdict.SAME
    if overwrite and source is not None:
        return FieldVerdict.PATCH
    if decision == Decision.TARGET:
        return FieldVerdict.KEEP
    if written is not None:
        if digest(target) == written.held:
            return FieldVerdict.PATCH
        if written.sent:
            return FieldVerdict.EDITED if digest(source) == written.wanted else FieldVerdict.EDITED_IN_BOTH
    if source is None:
        return FieldVerdict.KEEP
    if guarded:
        return FieldVerdict.CONFLICT
    if target is None:
        return FieldVerdict.PATCH
    return _merge_sets(source, target) if is_set else FieldVerdict.CONFLICT


def _merge_sets(source: str, target: str) -> FieldVerdict:
    """The larger set counts; two sets that each have something of their own are a conflict."""
    source_entries, target_entries = ({compact_json(entry) for entry in _entries(text)} for text in (source, target))
    if source_entries <= target_entries:
        return FieldVerdict.KEEP
    return FieldVerdict.PATCH if target_entries <= source_entries else FieldVerdict.CONFLICT


def _entries(text: str) -> Iterator[Any]:
    values = decode_json(text.encode())
    yield from values if isinstance(values, list) else ()
