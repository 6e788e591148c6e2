"""The words for what is done: by a plan with a record, by a plan with a file, and by a person with a conflict.

The journal has words of its own (`journal.WriteKind`, `journal.WriteState`). All of them are stored as they stand here.
"""

from __future__ import annotations

from enum import StrEnum


class Action(StrEnum):
    """What a plan does with a record of the source."""

    CREATE = "create"
    PATCH = "patch"
    MERGE = "merge"
    """Other records of the target are merged into its record, as a person decided."""
    UNCHANGED = "unchanged"
    CONFLICT = "conflict"
    """A person must decide."""
    SKIPPED = "skipped"
    """A person decided to leave it out."""
    QUARANTINED = "quarantined"
    """It cannot be sent, and issues.tsv lists it with its reason."""
    DELETE = "delete"
    """Its record, which a plan created, is deleted; only in rows of an undo."""


WRITTEN_ACTIONS = (Action.CREATE, Action.PATCH, Action.MERGE)
"""Actions that write to a record of the target."""

PRESENT_ACTIONS = (*WRITTEN_ACTIONS, Action.UNCHANGED)
"""Actions after which the target has the record."""


class FileAction(StrEnum):
    """What a plan does with a file of a record."""

    UPLOAD = "upload"
    THERE = "there"
    """The target has it."""
    MISSING = "missing"
    """The snapshot lacks its content."""
    DETACH = "detach"
    """It is deleted, because a plan attached it; only in rows of an undo."""


class Decision(StrEnum):
    """What a person may decide about a record."""

    CREATE = "create"
    """It is new."""
    SKIP = "skip"
    """Leave it out."""
    MATCH = "match"
    """It is a certain record of the target."""
    SOURCE = "source"
    """It is that record, and where the two differ, the source's values count."""
    TARGET = "target"
    """It is that record, and where the two differ, the target's values count."""
    MERGE = "merge"
    """It is each of several records of the target, which become one."""
