"""Learns which additional fields of publications refer to other records, and how their ids are sent."""

from __future__ import annotations

from collections.abc import Mapping

from pipelines.migration.model.resource_types import PUBLICATIONS, LeftOut
from pipelines.migration.plan.learned_types import is_sent_as_object, is_sent_as_text
from pipelines.records.additional_fields import FieldRule
from pipelines.records.shapes.field_names import (
    is_named_as_id,
    may_be_count,
    may_name_records,
    names_own_kind,
    resource_named,
    stem_of,
)
from pipelines.records.shapes.observation import FieldShape, Kind
from pipelines.shapes.model import FieldSchema, ResourceSchema
from pipelines.store.field_values import FoundValues


def never_moved(source: Mapping[str, FoundValues], shapes: Mapping[str, FieldShape]) -> dict[str, str]:
    """Additional fields that no target can take, because of what the source has in them → why: a `LeftOut`.

    `shapes`: those of the values in which numbers may be.
    """
    reasons: dict[str, str] = {}
    for name, found in source.items():
        if found.has_ids or is_named_as_id(name) or (found.is_number and resource_of_link(name, found)):
            reasons[name] = LeftOut.LINK
        elif name in shapes and may_name_records(name, shapes[name]):
            reasons[name] = LeftOut.UNKNOWN_REFERENCE
        elif found.is_signed:
            reasons[name] = LeftOut.SIGNED
    return reasons


def resource_of_link(name: str, found: FoundValues) -> str:
    """The resource to which an additional field of publications leads, by its name; empty where that says nothing."""
    if found.is_number and not found.entry_types and may_be_count(name):
        return ""
    return resource_named(stem_of(name)) or (PUBLICATIONS if names_own_kind(stem_of(name)) else "")


def link_rule(resource: str, source: FoundValues, schema: ResourceSchema, name: str) -> FieldRule:
    """How the ids of a link are sent: by the target's description, else as the source has them."""
    described = (schema.create.fields.get(name) if schema.create is not None else None) or FieldSchema()
    has_texts = "string" in source.types | source.entry_types
    shape = FieldShape(kinds={Kind.TEXT: 1} if has_texts else {})
    is_described = described.types or described.members or described.entries
    as_object = is_sent_as_object(described, shape) if is_described else source.has_ids
    return FieldRule(leads_to=resource, as_object=as_object, as_text=is_sent_as_text(described, shape))
