"""What changed in the service's shapes since an earlier snapshot, in sentences for people.

Fields of the other resources are counted in all records. Those of publications are counted in some of them, so that only a field that many
records had can be missed.
"""

from __future__ import annotations

from collections.abc import Mapping

from pipelines.humanize import counted
from pipelines.records.residue import IGNORED
from pipelines.records.shapes.observation import ANY_KEY, OTHERS, FieldShape, RecordShape
from pipelines.shapes.model import Description

MOST_SENTENCES = 12
"""Changes of one resource, or of the description, that are named; the others are counted."""

MOST_LEVELS = 2
"""Fields below each other that are compared."""

EXPECTED = 20
"""Records that should have a field of a sampled resource, before its absence means something."""


def changed_records(before: RecordShape, now: RecordShape) -> list[str]:
    """What changed in the records of one resource. Nothing where either side has no record."""
    if not before.records or not now.records:
        return []
    earlier, current = _named(before), _named(now)
    said = [
        f"new field {_path(path)} ({_kinds(field)}, in {field.seen:,} of {now.records:,}{_part(now)})"
        for path, field in current.items()
        if path not in earlier and _has_parent(path, earlier)
    ]
    said += [
        f"no record has {_path(path)} any more (before, {field.seen:,} of {before.records:,} had it)"
        for path, field in earlier.items()
        if path not in current and _has_parent(path, current) and _is_missed(before, now, field)
    ]
    said += [
        f"{_path(path)} is {_kinds(field)} now, before it was {_kinds(earlier[path])}"
        for path, field in current.items()
        if path in earlier and earlier[path].kinds and {*field.kinds} - {*earlier[path].kinds}
    ]
    return _limited(said)


def changed_description(before: Description | None, now: Description | None) -> list[str]:
    """What changed in the service's description: its operations, and the resources of which it says something else.

    Nothing where either could not be read.
    """
    if before is None or now is None or before.problem or now.problem or before.sha256 == now.sha256:
        return []
    earlier, current = {*before.operations}, {*now.operations}
    names = {**before.resources, **now.resources}
    changed = [name for name in names if before.resources.get(name) != now.resources.get(name)]
    said = [f"new operation {name}" for name in sorted(current - earlier)]
    said += [f"operation {name} is gone" for name in sorted(earlier - current)]
    return _limited([*said, *(f"other fields or values of {name}" for name in changed)])


def _named(shape: RecordShape) -> dict[tuple[str, ...], FieldShape]:
    return {
        path: field
        for path, field in shape.paths()
        if len(path) <= MOST_LEVELS and not {*path} & ({OTHERS, ANY_KEY} | IGNORED)
    }


def _has_parent(path: tuple[str, ...], fields: Mapping[tuple[str, ...], FieldShape]) -> bool:
    """Whether the object around a field is there on the other side, too; else the object itself is the news."""
    return len(path) == 1 or path[:-1] in fields


def _is_missed(before: RecordShape, now: RecordShape, field: FieldShape) -> bool:
    """Whether so many records had the field that its absence is no accident of a sample."""
    if not (before.sampled or now.sampled):
        return True
    return field.seen / before.records * now.records >= EXPECTED


def _kinds(field: FieldShape) -> str:
    return " or ".join(sorted(field.kinds)) or "always empty"


def _part(shape: RecordShape) -> str:
    return " records of a sample" if shape.sampled else ""


def _path(path: tuple[str, ...]) -> str:
    return f"`{'.'.join(path)}`"


def _limited(said: list[str]) -> list[str]:
    more = len(said) - MOST_SENTENCES
    return said if more <= 0 else [*said[:MOST_SENTENCES], f"{counted(more, 'further change')}"]
