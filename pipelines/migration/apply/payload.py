"""What one record is sent with, what of that may be left out where the service refuses it, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec

from pipelines.errors import RefusedError
from pipelines.migration.apply.attachments import asset_body
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.plan import PlannedFile, PlanRow
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.records.publications import REFERENCES


@dataclass
class RowResult:
    """What became of one row. `problem`: why it, or a file of it, could not be written."""

    row: PlanRow
    created: bool = False
    patched: bool = False
    files: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Uploaded:
    """What was uploaded to be sent with a record: its cover, and files of its own."""

    cover: dict[str, Any] | None = None
    files: tuple[tuple[PlannedFile, dict[str, Any]], ...] = ()

    def __bool__(self) -> bool:
        return self.cover is not None or bool(self.files)

    def beside(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """The payload with what was uploaded: `cover`, and files as `assets_attributes` (service.md#assets, service.md#covers)."""
        sent = dict(payload)
        if self.cover is not None:
            sent["cover"] = self.cover
        if self.files:
            sent["assets_attributes"] = [asset_body(file, uploaded) for file, uploaded in self.files]
        return sent


NOTHING = Uploaded()


def without_references(row: PlanRow, refusal: RefusedError, outcome: RowResult) -> PlanRow | None:
    """Returns the row without its references where they may be why the service refused the publication (service.md#references).

    A reference to a deleted record must not cost the record itself.
    """
    refer = [name for name in REFERENCES if row.payload.get(name)] if row.resource == PUBLICATIONS else []
    if refusal.status != HTTPStatus.NOT_FOUND or not refer:
        return None
    told = ", ".join(f"{name} {row.payload[name].get('id')}" for name in refer)
    outcome.problems.append(f"{told}: not sent, the target has no such record. {refusal}")
    payload, expected = ({name: one[name] for name in one if name not in refer} for one in (row.payload, row.expected))
    return msgspec.structs.replace(row, payload=payload, expected=expected)


def content_of(expected: Mapping[str, str | None]) -> str:
    """What is the same for records that nobody can tell apart."""
    return digest("\n".join(f"{name}:{value}" for name, value in sorted(expected.items()))) or ""
