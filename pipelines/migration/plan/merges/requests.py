"""How a merge is requested: as the target's description has it, or else as we assume (A6).

A merge cannot be taken back. So where the description has one whose body does not say clearly which record remains, none is sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from pipelines.migration.model.resource_types import MERGEABLE, MergeRequest, ResourceType
from pipelines.shapes.model import Description, MergeSchema, ResourceSchema

_REMAINS = re.compile(r"(^|_)(into|target|to|destination|remaining|keep|kept)(_|$)")
_GOES = re.compile(r"(^|_)(from|source|merge|merged|other|duplicate|remove)(_|$)")


def with_merges(
    types: Mapping[str, ResourceType], description: Description | msgspec.UnsetType
) -> dict[str, ResourceType]:
    """The types of resources, with how records of them are merged."""
    described = {} if isinstance(description, msgspec.UnsetType) else description.resources
    found = {
        name: msgspec.structs.replace(one, merge=merge_request(described.get(name, ResourceSchema()).merge))
        for name, one in types.items()
        if name in MERGEABLE
    }
    return {**types, **found}


def merge_request(schema: MergeSchema | None) -> MergeRequest | None:
    """The request that merges a record into another; None where the description has one that is not clear."""
    if schema is None:
        return MergeRequest()
    names = schema.body.required or [name for name, field in schema.body.fields.items() if not field.read_only]
    if len(names) != 1 or not names_remaining_record(names[0]):
        return None
    return MergeRequest(schema.body.method, schema.path, names[0], schema.body.wrapped_in, described=True)


def names_remaining_record(field: str) -> bool:
    """Whether the name of a field says clearly that its id is that of the record that remains."""
    return bool(_REMAINS.search(field)) and not _GOES.search(field)
