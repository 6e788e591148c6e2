"""Puts uploaded files into the payload of a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.migration.apply.attachments import asset_body
from pipelines.migration.model.plan import PlannedFile


@dataclass(frozen=True)
class Uploaded:
    """The uploaded files that are sent with a record: its cover, and attached files."""

    cover: dict[str, Any] | None = None
    files: tuple[tuple[PlannedFile, dict[str, Any]], ...] = ()

    def __bool__(self) -> bool:
        return self.cover is not None or bool(self.files)

    def added_to(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """The payload with `cover` and `assets_attributes` (service.md#covers, service.md#assets)."""
        body = dict(payload)
        if self.cover is not None:
            body["cover"] = self.cover
        if self.files:
            body["assets_attributes"] = [asset_body(file, uploaded) for file, uploaded in self.files]
        return body


NOTHING_UPLOADED = Uploaded()
