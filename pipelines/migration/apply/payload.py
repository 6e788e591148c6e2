"""The content of writes: a record with its cover, an asset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.migration.model.plan import PlannedFile
from pipelines.migration.plan.files import OCTETS


def with_cover(payload: Mapping[str, Any], uploaded: Mapping[str, Any] | None) -> dict[str, Any]:
    """The payload with the cover that was uploaded for it (service.md#covers)."""
    return dict(payload) if uploaded is None else {**payload, "cover": uploaded}


def asset_body(file: PlannedFile, uploaded: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an asset: `name`, `content_type`, `file` (service.md#assets)."""
    named = {} if file.name is None else {"name": file.name}
    return {**named, "content_type": file.content_type or OCTETS, "file": uploaded}
