"""Makes digests of the fields of records, which compare the planned values with those in responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.migration.model.comparable import digest
from pipelines.migration.model.resource_types import RESOURCE_TYPES
from pipelines.publication_fields import REFERENCES
from pipelines.records.forms import form_of
from pipelines.records.identifiers.kinds import Kinds
from pipelines.records.matching import comparable


class RecordDigests:
    """Digests of the fields of records as the service sends them, for every resource."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds

    def of_field(self, resource: str, name: str, value: Any) -> str | None:
        """The digest of one field with this value."""
        return digest(self._compared(resource, {name: value}).get(name))

    def of_response(
        self, resource: str, record: Mapping[str, Any], wanted: Mapping[str, str | None]
    ) -> dict[str, str | None]:
        """Field → digest of the value in a response; the wanted digests where the response has none of the wanted fields."""
        if not any(name in record for name in wanted):
            return dict(wanted)
        compared = self._compared(resource, record)
        return {name: digest(compared.get(name)) for name in wanted}

    def _compared(self, resource: str, record: Mapping[str, Any]) -> Mapping[str, str]:
        if resource_type := RESOURCE_TYPES.get(resource):
            return resource_type.compared(resource_type.values(record))
        return comparable(form_of(record, self._kinds).fields, self._kinds)


def not_kept(
    record: Mapping[str, Any],
    wanted: Mapping[str, str | None],
    found: Mapping[str, str | None],
    left_out: Iterable[str],
) -> str | None:
    """What the target lacks of a write, by the response to it; None where it has all of it.

    A field that the response does not have is unknown and not counted, except a reference. `found`: the digests of the response;
    `left_out`: references that were not sent.
    """
    fields = [
        name
        for name, value in wanted.items()
        if value is not None and found.get(name) != value and (name in record or (name in REFERENCES and record))
    ]
    changed = [f"{', '.join(fields)}: the service answered another value than was sent."] if fields else []
    return " ".join([*left_out, *changed]) or None


def content_of(expected: Mapping[str, str | None]) -> str:
    """One digest over all expected fields; it is the same for records that look the same in the target."""
    return digest("\n".join(f"{name}:{value}" for name, value in sorted(expected.items()))) or ""
