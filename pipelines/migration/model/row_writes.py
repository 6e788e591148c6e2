"""The writes that a row of a plan needs, as the journal names them: one list for the forecast, for apply, and for the status."""

from __future__ import annotations

from pipelines.migration.model.actions import Action
from pipelines.migration.model.file_comparison import part_of
from pipelines.migration.model.journal_entries import WriteKind
from pipelines.migration.model.plan import PlanRow
from pipelines.records.files import ASSET, COVER

KINDS = {ASSET: WriteKind.ASSET, COVER: WriteKind.COVER}
"""Kind of a file → that of its write."""

LINK = (WriteKind.LINK, "")

WORK = {
    WriteKind.CREATE: "create",
    WriteKind.PATCH: "patch",
    WriteKind.LINK: "links",
    WriteKind.MERGE: "merge",
    WriteKind.COVER: "covers",
    WriteKind.ASSET: "files",
    WriteKind.ACTION: "actions",
}
"""Kind of a write → the work under which it counts in `PlanFacts.work`."""


def writes_of(row: PlanRow) -> list[tuple[WriteKind, str]]:
    """Kind and part of each write of a row, in their order; records that are added to a list of another one are part of its link."""
    if row.action == Action.MERGE:
        return [(WriteKind.MERGE, str(number)) for number in row.candidates]
    writes = [(WriteKind.CREATE if row.action == Action.CREATE else WriteKind.PATCH, "")] if row.writes else []
    writes += [(WriteKind.ACTION, name) for name in row.after]
    writes += [(KINDS[file.kind], part_of(file)) for file in row.uploads]
    return writes + ([LINK] if any(reference.later for reference in row.references.values()) else [])


def requests_of(kind: WriteKind, *, is_new: bool) -> int:
    """Requests to the library for a write; those to the storage do not count. `is_new`: whether its record is created.

    A file takes one for its presigned form, and one more unless it is the cover of a new record (service.md#upload).
    """
    return 1 if kind not in KINDS.values() or (is_new and kind == WriteKind.COVER) else 2
