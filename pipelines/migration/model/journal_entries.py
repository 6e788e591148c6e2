"""One write of a migration as the journal has it: what was written, of which kind, and in which state."""

from __future__ import annotations

from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple

import msgspec

from pipelines.records.values import RecordId

COLUMNS = (
    "number, plan, resource, source_id, kind, part, state, target_id, asset_id, wanted, held, status, message, "
    "begun_at, ended_at, sent_at"
)
"""The columns of an entry in `migration_writes` (`pipelines.state.tables`)."""


class WriteKind(StrEnum):
    """What a write does in the target."""

    CREATE = "create"
    PATCH = "patch"
    LINK = "link"
    """It sets references to records that were created after the record itself."""
    MEMBER = "member"
    """It adds a record to a list below another one; the part is the field and the id, such as `publication_ids 9`."""
    MERGE = "merge"
    """It merges a record of the target, whose id is the part, into another one, which remains."""
    ASSET = "asset"
    """It attaches a file."""
    COVER = "cover"
    """It sets the cover."""
    ACTION = "action"
    """It sets a field by a request of its own; the field is the part."""


REPEATABLE = frozenset({WriteKind.PATCH, WriteKind.LINK, WriteKind.COVER, WriteKind.ACTION})
"""Writes that may be sent again at any time; the others must not happen twice."""


class WriteState(StrEnum):
    """How far a write is."""

    INTENDED = "intended"
    """Its request may have been sent, and no response is known."""
    DONE = "done"
    REFUSED = "refused"
    """The service refused it; nothing was written."""
    PARKED = "parked"
    """It is unknown whether it happened; a person must look."""
    UNDONE = "undone"
    """It was taken back."""


class FailedWriteError(Exception):
    """A write was refused or parked, and the journal has it; other rows go on."""


class JournalEntry(msgspec.Struct, kw_only=True, frozen=True):
    """One write. `part` names a file of the record or what is merged into it, and is empty for the record itself."""

    number: int
    plan: str
    resource: str
    source_id: RecordId
    kind: WriteKind
    part: str
    state: WriteState
    target_id: RecordId | None
    """The record in the target; for a file, the record to which it is attached."""
    asset_id: int | None
    wanted: dict[str, str | None]
    """Field → digest of what was sent, in compared form."""
    held: dict[str, str | None]
    """Field → digest of what the service then had."""
    status: int | None
    message: str | None
    begun_at: str
    ended_at: str | None
    sent_at: str | None
    """When its request last left, while no response to that is known."""


class WrittenFile(NamedTuple):
    """What a plan needs of the write of a file; texts as in a `JournalEntry`."""

    kind: str
    part: str
    state: str
    asset_id: int | None
    message: str | None = None


class WrittenRecord(msgspec.Struct, kw_only=True):
    """What all plans together wrote for one record of the source."""

    source_id: RecordId
    target_id: RecordId
    wanted: dict[str, str | None]
    held: dict[str, str | None]


def is_done(entry: JournalEntry | None) -> bool:
    """Whether the write happened."""
    return entry is not None and entry.state == WriteState.DONE


def may_have_been_sent(entry: JournalEntry) -> bool:
    """Whether a request of an intended entry may have left; where none did, there is nothing to look up."""
    return entry.state != WriteState.INTENDED or entry.sent_at is not None


def is_unsettled(entry: JournalEntry | None) -> bool:
    """Whether an entry has to be settled before it is sent: it is in doubt."""
    return entry is not None and in_doubt(entry) and may_have_been_sent(entry)


def was_accepted(entry: JournalEntry) -> bool:
    """Whether the service answered with success, and not with the record that it made: such a write is never sent again."""
    return in_doubt(entry) and entry.status is not None and entry.status // 100 == HTTPStatus.OK // 100


def in_doubt(entry: JournalEntry | None) -> bool:
    """Whether it is unknown if the write happened."""
    return entry is not None and entry.state in (WriteState.INTENDED, WriteState.PARKED)
