"""The bodies of writes: a record with its cover, a change, an asset."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pipelines.migration.model.plan import PlannedFile, PlanRow
from pipelines.migration.plan.files import OCTETS


def with_cover(payload: Mapping[str, Any], uploaded: Mapping[str, Any] | None) -> dict[str, Any]:
    """The payload with the cover that was uploaded for it (service.md#covers)."""
    return dict(payload) if uploaded is None else {**payload, "cover": uploaded}


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
