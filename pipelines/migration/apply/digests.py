"""Makes digests of the fields of records, which compare the planned values with those in responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.migration.model.actions import Action
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.resource_types import ResourceType


class RecordDigests:
    """Digests of the fields of records as the service sends them. `types`: of every resource."""

    def __init__(self, types: Mapping[str, ResourceType]) -> None:
        self._types = types

    def enter(  # noqa: PLR0917  what was sent, and what came back
        self,
        journal: Journal,
        number: int,
        row: PlanRow,
        target_id: int,
        record: Mapping[str, Any],
        expected: Mapping[str, str | None],
        left_out: Iterable[str] = (),
    ) -> None:
        """Enter a write as done, with what the target has of it. `record`: as a response shows it; `left_out`: what was not sent."""
        held = self.of_response(row, record, expected)
        incomplete = self.not_kept(row, record, expected, held, left_out)
        journal.done(number, target_id=target_id, held=held, message=incomplete)

    def of_response(
        self, row: PlanRow, record: Mapping[str, Any], expected: Mapping[str, str | None]
    ) -> dict[str, str | None]:
        """Field → digest of the value in a response; the expected digests where the response has none of their fields.

        Of a record that was created, also the undocumented fields that the service filled itself: a later change of them shows.
        """
        if not self.shows_any(row, record, expected):
            return dict(expected)
        compared = self.compared(row, record)
        undocumented = self._types[row.resource].undocumented if row.action == Action.CREATE else ()
        filled = [name for name in undocumented if self._has(row, record, name)]
        return {name: digest(compared.get(name)) for name in (*expected, *filled)}

    def of_shown(self, row: PlanRow, record: Mapping[str, Any], names: Iterable[str]) -> dict[str, str | None]:
        """Field → digest of the value in a response, of those of the fields that it has."""
        compared = self.compared(row, record)
        return {name: digest(compared.get(name)) for name in names if self._has(row, record, name)}

    def not_kept(
        self,
        row: PlanRow,
        record: Mapping[str, Any],
        expected: Mapping[str, str | None],
        received: Mapping[str, str | None],
        left_out: Iterable[str],
    ) -> str | None:
        """What the target lacks of a write, by the response to it; None where it has all of it.

        A field that the response does not have is unknown and not counted, except one that the service may fill itself, or ignore:
        services ignore fields that they do not have. `received`: the digests of the response; `left_out`: references that were not sent.
        """
        resource_type = self._types[row.resource]
        counted = resource_type.filled | resource_type.undocumented if record else frozenset[str]()
        fields = [
            name
            for name, value in expected.items()
            if value is not None and received.get(name) != value and (name in counted or self._has(row, record, name))
        ]
        ignored = [name for name in fields if name in resource_type.undocumented and record.get(name) is None]
        changed = [name for name in fields if name not in ignored]
        messages = [f"{', '.join(changed)}: the service answered another value than was sent."] if changed else []
        messages += (
            [f"{', '.join(ignored)}: the service answered without it, so it does not keep it."] if ignored else []
        )
        return " ".join([*left_out, *messages]) or None

    def compared(self, row: PlanRow, record: Mapping[str, Any]) -> Mapping[str, str]:
        """Field → text, in compared form."""
        return self._types[row.resource].compared_record(record)

    def shows_any(self, row: PlanRow, record: Mapping[str, Any], names: Iterable[str]) -> bool:
        """Whether a response has any of these fields."""
        return any(self._has(row, record, name) for name in names)

    def _has(self, row: PlanRow, record: Mapping[str, Any], name: str) -> bool:
        return self._types[row.resource].has(record, name)


def content_of(expected: Mapping[str, str | None]) -> str:
    """One digest over all expected fields; it is the same for records that look the same in the target."""
    return digest("\n".join(f"{name}:{value}" for name, value in sorted(expected.items()))) or ""
