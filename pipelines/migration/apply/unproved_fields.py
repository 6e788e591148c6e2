"""Fields that no description proves: what the target refuses is left out, and what it does not keep is found out.

A new record is also tried without its empty texts and lists, which say the same as null.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from pipelines.errors import AccessDeniedError, ProtocolError, RefusedError
from pipelines.migration.apply.digests import has_field
from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.resource_types import Source
from pipelines.records.additional_fields import is_sent_empty
from pipelines.records.values import whole_number
from pipelines.service.client import LibraryClient


class UnprovedFields:
    """Knows for each resource whether its target refuses these fields, so that only the first record costs a request more.

    `of_publications`: these fields of publications; those of another resource are in the type of a row.
    """

    def __init__(self, of_publications: Collection[str] = ()) -> None:
        self._of_publications = of_publications
        self._refusals: dict[str, str] = {}
        self._without_empty: set[tuple[str, int]] = set()
        """Resource and id of the rows that are tried without empty values; the id 0 stands for all rows."""

    def reduce(self, row: PlanRow, problems: list[str]) -> PlanRow:
        """The row as the target takes it, as far as that is known. What is left out is added to `problems`."""
        if (row.resource, 0) in self._without_empty:
            row = _without_empty(row) or row
        answer = self._refusals.get(row.resource)
        return row if answer is None else self._without(row, answer, problems) or row

    def without(self, row: PlanRow, refusal: RefusedError, problems: list[str]) -> PlanRow | None:
        """A row without these fields, after a refusal of its content; None where it has none."""
        if not refusal.is_about_content:
            return None
        if (filled := _without_empty(row)) is not None:
            self._without_empty.add((row.resource, row.source_id))
            return filled
        self._without_empty.discard((row.resource, row.source_id))
        reduced = self._without(row, str(refusal), problems)
        if reduced is not None and any(name in str(refusal) for name in row.payload.keys() - reduced.payload.keys()):
            self.confirm(row, refusal)
        return reduced

    def confirm(self, row: PlanRow, refusal: RefusedError) -> None:
        """Without what was left out a record was taken: that was the reason."""
        if (row.resource, row.source_id) in self._without_empty:
            self._without_empty.add((row.resource, 0))
        else:
            self._refusals.setdefault(row.resource, str(refusal))

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


def _without_empty(row: PlanRow) -> PlanRow | None:
    """A new record without its empty texts and lists; None where it has none."""
    payload = {name: value for name, value in row.payload.items() if not is_sent_empty(value)}
    if row.action != Action.CREATE or len(payload) in {0, len(row.payload)}:
        return None
    return msgspec.structs.replace(row, payload=payload)


class FirstRecords:
    """Reads new records back where the target's fields are known from records only.

    Those are the first of each resource, and the first with a field that no record of the target has. The response to a create may show
    fields that the target does not keep, or no fields at all.
    """

    def __init__(self, client: LibraryClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._judged: dict[str, set[str]] = {}
        self._lost: dict[str, set[str]] = {}
        self._has_addresses = True
        """Whether records may have addresses of their own; where one has none, no further resource is asked for one."""

    @contextmanager
    def alone(self, row: PlanRow) -> Iterator[None]:
        """Write creations that are to be read back one at a time: the others profit from the answer."""
        if row.action != Action.CREATE or not self._is_unknown(row):
            yield
            return
        with self._lock:
            yield

    def as_kept(self, row: PlanRow, record: Mapping[str, Any]) -> dict[str, Any]:
        """The record of a response as the target keeps it, as far as that is known: a field that it does not keep is null."""
        if self._is_unknown(row):
            kept = self.read(row, record)
            self._judged.setdefault(row.resource, set()).update(row.payload)
            self._lost.setdefault(row.resource, set()).update(
                name for name in row.payload if kept and not has_field(row, kept, name)
            )
            record = kept or record
        return {**record, **{name: None for name in self._lost.get(row.resource, ()) if name in row.payload}}

    def _is_unknown(self, row: PlanRow) -> bool:
        """Whether a new record would show more about what the target keeps."""
        if row.type is None or not (row.type.source == Source.RECORDS or row.type.unproved):
            return False
        judged = self._judged.get(row.resource)
        return judged is None or not judged.issuperset(row.payload.keys() & {*row.type.unproved})

    def read(self, row: PlanRow, created: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a record as it is read; empty where it is neither at an address of its own nor at an end of its list."""
        number = whole_number(created["id"])
        if self._has_addresses:  # no such address is documented (service.md#not-shown)
            with suppress(RefusedError, ProtocolError, AccessDeniedError):
                record = self._client.get_record(f"{row.resource}/{number}")
                if whole_number(record.get("id")) == number:
                    return record
            self._has_addresses = False
        listed = self._client.list_ends(row.resource)
        return next((record for record in listed if whole_number(record.get("id")) == number), {})
