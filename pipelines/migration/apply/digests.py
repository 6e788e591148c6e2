"""Makes digests of the fields of records, which compare the planned values with those in responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.migration.model.actions import Action
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.plan import PlanRow
from pipelines.publication_fields import REFERENCES
from pipelines.records.forms import form_of
from pipelines.records.identifiers.kinds import Kinds
from pipelines.records.matching import comparable


class RecordDigests:
    """Digests of the fields of records as the service sends them, for every resource."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds

    def of_field(self, row: PlanRow, name: str, value: Any) -> str | None:
        """The digest of one field of a row with this value."""
        return digest(self.compared(row, {name: value}).get(name))

    def of_response(
        self, row: PlanRow, record: Mapping[str, Any], wanted: Mapping[str, str | None]
    ) -> dict[str, str | None]:
        """Field → digest of the value in a response; the wanted digests where the response has none of the wanted fields.

        Of a publication that was created, also the additional fields that the service filled itself: a later change of them shows.
        """
        if not shows_any(row, record, wanted):
            return dict(wanted)
        compared = self.compared(row, record)
        is_new = row.type is None and row.action == Action.CREATE
        filled = [name for name in self._kinds.additional if is_new and name in record]
        return {name: digest(compared.get(name)) for name in (*wanted, *filled)}

    def not_kept(
        self,
        row: PlanRow,
        record: Mapping[str, Any],
        wanted: Mapping[str, str | None],
        found: Mapping[str, str | None],
        left_out: Iterable[str],
    ) -> str | None:
        """What the target lacks of a write, by the response to it; None where it has all of it.

        A field that the response does not have is unknown and not counted, except a reference, and a field that nothing proves, or
        an additional one of a publication: services ignore fields that they do not have. `found`: the digests of the response; `left_out`:
        references that were not sent.
        """
        is_shown = shows_any(row, record, wanted)
        may_be_ignored = self._kinds.additional if row.type is None else row.type.unproved
        fields = [
            name
            for name, value in wanted.items()
            if value is not None
            and found.get(name) != value
            and (
                has_field(row, record, name) or (name in REFERENCES and record) or (name in may_be_ignored and is_shown)
            )
        ]
        ignored = [name for name in fields if name in may_be_ignored and record.get(name) is None]
        changed = [name for name in fields if name not in ignored]
        messages = [f"{', '.join(changed)}: the service answered another value than was sent."] if changed else []
        messages += (
            [f"{', '.join(ignored)}: the service answered without it, so it does not keep it."] if ignored else []
        )
        return " ".join([*left_out, *messages]) or None

    def compared(self, row: PlanRow, record: Mapping[str, Any]) -> Mapping[str, str]:
        """Field → text, in compared form."""
        if row.type is not None:
            return row.type.compared_record(record)
        return comparable(form_of(record, self._kinds).fields, self._kinds)


def has_field(row: PlanRow, record: Mapping[str, Any], name: str) -> bool:
    """Whether a record has a field, under any of the keys that it may have."""
    return name in record if row.type is None else row.type.has(record, name)


def shows_any(row: PlanRow, record: Mapping[str, Any], names: Iterable[str]) -> bool:
    """Whether a response has any of these fields."""
    return any(has_field(row, record, name) for name in names)


def content_of(expected: Mapping[str, str | None]) -> str:
    """One digest over all expected fields; it is the same for records that look the same in the target."""
    return digest("\n".join(f"{name}:{value}" for name, value in sorted(expected.items()))) or ""
