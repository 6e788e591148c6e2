"""Makes digests of the fields of records, which compare the planned values with those in responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.migration.model.actions import Action
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.resource_types import ResourceType
from pipelines.migration.model.step import Step
from pipelines.records.paths import value_at

Digests = Mapping[str, str | None]
"""Field → digest of its value in compared form; none where it is empty."""


def enter_done(  # noqa: PLR0917  what was sent, and what came back
    step: Step,
    number: int,
    row: PlanRow,
    record: Mapping[str, Any],
    expected: Digests,
    left_out: Iterable[str] = (),
) -> None:
    """Enter a write as done, with what the target has of it. `record`: as a response shows it; `left_out`: what was not sent."""
    resource_type = step.types[row.resource]
    held = digests_of_response(resource_type, row, record, expected)
    incomplete = not_kept(resource_type, record, expected, held, left_out)
    step.journal.done(number, target_id=row.existing_target_id, held=held, message=incomplete)


def digests_of_response(
    resource_type: ResourceType, row: PlanRow, record: Mapping[str, Any], expected: Digests
) -> dict[str, str | None]:
    """The digests of the values in a response; the expected ones where the response has none of their fields.

    Of a record that was created, also the undocumented fields that the service filled itself: a later change of them shows.
    """
    if not shows_any(resource_type, record, expected):
        return dict(expected)
    compared = resource_type.compared_record(record)
    undocumented = resource_type.undocumented if row.action == Action.CREATE else ()
    filled = [name for name in undocumented if resource_type.has(record, name)]
    return {name: digest(compared.get(name)) for name in (*expected, *filled)}


def not_kept(
    resource_type: ResourceType,
    record: Mapping[str, Any],
    expected: Digests,
    received: Digests,
    left_out: Iterable[str],
) -> str | None:
    """What the target lacks of a write, by the response to it; None where it has all of it.

    A field that the response does not have is unknown and not counted, except one that the service may fill itself, or ignore:
    services ignore fields that they do not have. `received`: the digests of the response; `left_out`: references that were not sent.
    """
    counted = resource_type.filled | resource_type.undocumented if record else frozenset[str]()
    fields = [
        name
        for name, value in expected.items()
        if value is not None and received.get(name) != value and (name in counted or resource_type.has(record, name))
    ]
    ignored = [name for name in fields if name in resource_type.undocumented and value_at(record, name) is None]
    changed = [name for name in fields if name not in ignored]
    messages = [f"{', '.join(changed)}: the service answered another value than was sent."] if changed else []
    messages += [f"{', '.join(ignored)}: the service answered without it, so it does not keep it."] if ignored else []
    return " ".join([*left_out, *messages]) or None


def shows_any(resource_type: ResourceType, record: Mapping[str, Any], names: Iterable[str]) -> bool:
    """Whether a response has any of these fields."""
    return any(resource_type.has(record, name) for name in names)
