"""Fields that no description proves the target to take: they are sent, and left out once the target refuses a record with them."""

from __future__ import annotations

from collections.abc import Collection
from http import HTTPStatus

import msgspec

from pipelines.errors import RefusedError
from pipelines.migration.model.plan import PlanRow

_REFUSED = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})


class UnprovedFields:
    """Knows for each resource whether its target refuses these fields, so that only the first record costs a request more.

    `of_publications`: these fields of publications; those of another resource are in the type of a row.
    """

    def __init__(self, of_publications: Collection[str] = ()) -> None:
        self._of_publications = of_publications
        self._refusals: dict[str, str] = {}

    def reduce(self, row: PlanRow, problems: list[str]) -> PlanRow:
        """The row as the target takes it, as far as that is known. What is left out is added to `problems`."""
        answer = self._refusals.get(row.resource)
        return row if answer is None else self._without(row, answer, problems) or row

    def without(self, row: PlanRow, refusal: RefusedError, problems: list[str]) -> PlanRow | None:
        """A row without these fields, after a refusal of its content; None where it has none."""
        if refusal.status not in _REFUSED:
            return None
        reduced = self._without(row, str(refusal), problems)
        if reduced is not None and any(name in str(refusal) for name in row.payload.keys() - reduced.payload.keys()):
            self.confirm(row.resource, refusal)
        return reduced

    def confirm(self, resource: str, refusal: RefusedError) -> None:
        """Without these fields a record was taken: they were the reason."""
        self._refusals.setdefault(resource, str(refusal))

    def _without(self, row: PlanRow, answer: str, problems: list[str]) -> PlanRow | None:
        unproved = row.type.unproved if row.type else self._of_publications
        names = [name for name in unproved if name in row.payload]
        if not names:
            return None
        problem = f"{', '.join(names)}: not sent, the target does not take a record with it. {answer}"
        if problem not in problems:
            problems.append(problem)
        payload, expected = (
            {name: fields[name] for name in fields if name not in names} for fields in (row.payload, row.expected)
        )
        return msgspec.structs.replace(row, payload=payload, expected=expected)
