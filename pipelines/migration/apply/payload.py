"""Puts uploaded files into the payload of a record."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.migration.model.plan import PlannedFile, PlanRow
from pipelines.migration.plan.files import OCTETS


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


def change_request(
    row: PlanRow, changes: Mapping[str, Any], there: Mapping[str, Any] | None = None
) -> tuple[str, dict[str, Any]]:
    """The method and the body of a change. `there`: the values of the record now, which a PUT sends again, since it replaces the record."""
    if row.type is None:
        return "PATCH", dict(changes)
    values = {**(there or {}), **changes} if row.type.method == "PUT" else changes
    return row.type.method, row.type.body(values)


def create_body(row: PlanRow, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The body that creates the record of a row."""
    return dict(payload) if row.type is None else row.type.body(payload)


def names_sent(row: PlanRow, body: Mapping[str, Any]) -> Collection[str]:
    """The names of the fields in the body of a create."""
    wrapped = row.type.wrapped_in if row.type is not None else ""
    return (body[wrapped] if wrapped else body).keys()


def asset_body(file: PlannedFile, uploaded: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an asset: `name`, `content_type`, `file` (service.md#assets)."""
    named = {} if file.name is None else {"name": file.name}
    return {**named, "content_type": file.content_type or OCTETS, "file": uploaded}
