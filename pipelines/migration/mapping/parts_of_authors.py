"""What authors of publications have besides what the service documents, such as `orcid`: of authors, only that is learned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from pipelines.migration.model.field_mapping import several
from pipelines.migration.model.target_reading import RecordListing
from pipelines.records.tables.publication_fields import AUTHOR_KEYS, AUTHORS
from pipelines.shapes.model import FieldSchema, PayloadSchema, ResourceSchema

_NOT_LEARNED = AUTHOR_KEYS | {"id"}
"""Documented members, and the number that an entry has itself."""


class PublicationListing(RecordListing):
    """Publications whose authors have only what the service does not document."""

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield each record."""
        for record in super().records():
            authors = [author for author in several(record.get(AUTHORS)) if isinstance(author, dict)]
            parts = [{name: part for name, part in author.items() if name not in _NOT_LEARNED} for author in authors]
            rest = {name: value for name, value in record.items() if name != AUTHORS}
            yield rest | {AUTHORS: parts} if any(parts) else rest


def described_parts(schema: ResourceSchema) -> ResourceSchema:
    """The description of such publications."""
    return replace(schema, record=_parts(schema.record), create=_payload(schema.create), change=_payload(schema.change))


def _payload(payload: PayloadSchema | None) -> PayloadSchema | None:
    if payload is None:
        return None
    required = [name for name in payload.required if name != AUTHORS]
    return replace(payload, fields=_parts(payload.fields), required=required)


def _parts(fields: Mapping[str, FieldSchema]) -> dict[str, FieldSchema]:
    """These fields; that of authors has what is described besides, and is absent where that is nothing.

    One without a type takes anything.
    """
    if AUTHORS in fields and not fields[AUTHORS].types:
        return {**fields}
    rest = {name: field for name, field in fields.items() if name != AUTHORS}
    objects = fields[AUTHORS].entries if AUTHORS in fields else None
    members = {name: part for name, part in (objects.members if objects else {}).items() if name not in _NOT_LEARNED}
    if not (objects and members):
        return rest
    return rest | {AUTHORS: replace(fields[AUTHORS], entries=replace(objects, members=members))}
