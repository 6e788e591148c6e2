"""The shapes of a snapshot for a sandbox (`--shapes`): it then takes and returns every field that the library's own records have.

The sandbox's assumptions about fields that the service does not document are no obstacle then: what a drill or a rehearsal finds is about
the snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.migration.model.resource_types import COMPLETED, LINKS, PUBLICATIONS, USERS
from pipelines.records.shapes.field_names import fields_to_send
from pipelines.records.shapes.observation import RecordShape
from pipelines.records.tables.publication_fields import WRITTEN

_DOCUMENTED_FIELDS = frozenset({"email", "name", "roles", "avatar"})
"""Fields of users (service.md#users). The sandbox knows them, and the account that signs in has them."""

FILES = ("cover", "assets", "assets_attributes")
"""Fields of publications in records and payloads that have files (service.md#assets)."""


def sandbox_shapes(shapes: Mapping[str, RecordShape], additional: Iterable[str] = ()) -> dict[str, Any]:
    """The content of the file for `--shapes`, for these resources other than publications. A resource without records is left out.

    `additional`: fields of publications that the service does not document. Without any, publications keep the documented shape.
    """
    fields = {resource: _fields(shape) for resource, shape in shapes.items()}
    users = fields.pop(USERS, {})
    if not users.keys() <= _DOCUMENTED_FIELDS:
        fields[USERS] = users | {name: {"from": name} for name in sorted(_DOCUMENTED_FIELDS)}
    if additional := [*additional]:
        documented = {name: {"from": name} for name in (*WRITTEN, *FILES)}
        fields[PUBLICATIONS] = documented | {name: {"schema": {}} for name in additional}
    return {"resources": {resource: {"fields": content} for resource, content in fields.items() if content}}


def _fields(shape: RecordShape) -> dict[str, Any]:
    """Every field that a client may write, and references among links.

    The time of completion of a task is none: nothing documents how to create a completed task.
    """
    names = fields_to_send(shape) | {name: shape.fields[name] for name in LINKS if name in shape.fields}
    return {name: {"schema": {}} for name in names if name != COMPLETED}
