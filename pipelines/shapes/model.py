"""What was learned of a library: its description in short, as a snapshot and a plan keep it."""

from __future__ import annotations

import msgspec


class FieldSchema(msgspec.Struct, omit_defaults=True):
    """One field as the description has it."""

    types: list[str] = []
    """Names of JSON Schema: string, integer, number, boolean, object, array, null."""
    format: str = ""
    choices: list[str] = []
    """The values of an enumeration, as text."""
    read_only: bool = False
    members: dict[str, FieldSchema] = {}
    entries: FieldSchema | None = None


class PayloadSchema(msgspec.Struct, omit_defaults=True):
    """The body of a request."""

    fields: dict[str, FieldSchema] = {}
    required: list[str] = []
    is_open: bool = False
    """Whether it takes further fields."""
    wrapped_in: str = ""
    """The key around the record, if there is one."""
    method: str = ""

    @property
    def writable(self) -> dict[str, FieldSchema]:
        """The fields that a client may send, without those that the service fills."""
        return {name: field for name, field in self.fields.items() if not field.read_only}


class MergeSchema(msgspec.Struct, omit_defaults=True):
    """The request that merges two records: its path below the list, with `{}` for the id of one of them, and its body."""

    path: str
    body: PayloadSchema


class ResourceSchema(msgspec.Struct, omit_defaults=True):
    """One resource: its records, the bodies that create and change one, and how two are merged."""

    record: dict[str, FieldSchema] = {}
    create: PayloadSchema | None = None
    change: PayloadSchema | None = None
    merge: MergeSchema | None = None
    answer_id: str = ""
    """Where the answer to a creation has the id of the new record, where it is not beside its fields."""
    presign: dict[str, str] = {}
    """Kind of a file → the path that signs the form of its upload, where it is not the documented one (service.md#presign)."""


class Description(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a version of the API says about itself in its swagger.yaml (service.md#overview)."""

    address: str
    sha256: str = ""
    requests: int = 0
    """Requests to the service."""
    problem: str = ""
    """Why it could not be read; empty where it was."""
    notes: list[str] = []
    """What was not followed in it."""
    operations: dict[str, list[str]] = {}
    """Operation, such as `GET /publications/{}` → its query parameters."""
    resources: dict[str, ResourceSchema] = {}
    lists: dict[str, list[str]] = {}
    """Path of each operation that answers with a list, such as `/collections/{}/publications` → the fields of its records."""
    additions: dict[str, PayloadSchema] = {}
    """Path of such a list below a record → the body of the POST that adds an entry."""
