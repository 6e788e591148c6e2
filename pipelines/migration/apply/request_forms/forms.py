"""Chooses the form of each write of a resource that nothing describes: the documented one, or else the one that the target takes (A6).

An alternative is tried where the target refuses the documented form as such, never after an unclear answer. What it proves to take, or to
refuse, is known for all later writes and plans.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import msgspec

from pipelines.errors import RefusedError
from pipelines.migration.apply.digests import RecordDigests, has_most
from pipelines.migration.apply.payload import change_request
from pipelines.migration.apply.request_forms.known_forms import Alternative, KnownForms, Operation, Verdict
from pipelines.migration.apply.request_forms.refusals import refuses_method, words_of
from pipelines.migration.apply.request_forms.whole_records import WholeRecords
from pipelines.migration.apply.unproved_fields import FirstRecords
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import FailedWriteError
from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.resource_types import USERS, Source
from pipelines.migration.model.wording import noun
from pipelines.records.additional_fields import is_managed
from pipelines.records.identifiers.kinds import Kinds
from pipelines.service.client import LibraryClient
from pipelines.shapes.model import ResourceSchema

_MISSING = frozenset({"missing", "required", "expected", "empty", "blank"})


class RequestForms:
    """The forms of the writes of one run, from several threads at once. `described`: resource → what the plan knows of its description."""

    def __init__(  # noqa: PLR0917  what is known, and what is asked
        self,
        known: KnownForms,
        whole: WholeRecords,
        client: LibraryClient,
        journal: Journal,
        kinds: Kinds,
        described: Mapping[str, ResourceSchema],
    ) -> None:
        self._described = described
        self._known = known
        self._whole = whole
        self._client = client
        self._journal = journal
        self._digests = RecordDigests(kinds)
        self._first = FirstRecords(client)
        self._lock = threading.RLock()
        self._proved: set[tuple[str, Operation]] = set()
        """Operations that succeeded in this run, so that a later refusal is about a record and not about the form."""

    @contextmanager
    def alone(self, row: PlanRow, *, is_change: bool) -> Iterator[None]:
        """Send changes one at a time until one succeeded: the others profit from the answer."""
        if not is_change or not _is_open(row) or (row.resource, Operation.CHANGE) in self._proved:
            yield
            return
        with self._lock:
            yield

    def known(self, row: PlanRow, operation: Operation) -> PlanRow:
        """The row in the form that the target is known to take."""
        if _is_open(row):
            for alternative in Alternative:
                if self._known.verdict(row.resource, operation, alternative) == Verdict.TAKEN:
                    row = _with(row, alternative)
        return row

    def change_request(
        self, row: PlanRow, target_id: int, changes: Mapping[str, Any], there: Mapping[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """The method and the body of a change. `there`: what the plan knows of the record, which counts where a description has PUT."""
        others = self._other_fields(row)
        if row.type is None or row.type.method != "PUT" or not (_is_open(row) or others):
            return change_request(row, changes, there)
        with self._lock:
            record = self._whole.read(row.resource, target_id)
        if record is None:
            text = f"{row.resource}/{target_id} was not changed: the target does not list it any more."
            raise RefusedError(text, status=HTTPStatus.NOT_FOUND, code="RecordNotFound")
        if not _is_open(row):
            sent = change_request(row, changes, there)[1]
            content = sent[row.type.wrapped_in] if row.type.wrapped_in else sent
            content |= {key: value for key, value in record.items() if key in others}
            return "PUT", sent
        replaced = {key for name in changes for key in row.type.keys_of(name)}
        kept = {key: value for key, value in record.items() if key not in replaced and not is_managed(key)}
        content = kept | {name: row.type.sent(name, value) for name, value in changes.items()}
        return "PUT", {row.type.wrapped_in: content} if row.type.wrapped_in else content

    def _other_fields(self, row: PlanRow) -> set[str]:
        """Fields that the description has in a change and the plan does not know, because the source has none of them."""
        change = self._described.get(row.resource, ResourceSchema()).change
        if change is None or row.type is None:
            return set()
        known = {key for name in row.type.fields for key in row.type.keys_of(name)}
        return {name for name, field in change.fields.items() if not field.read_only} - known

    def alternative(
        self, row: PlanRow, operation: Operation, refusal: RefusedError, target_id: int | None = None
    ) -> PlanRow | None:
        """The row in another form, to be sent now, after a refusal that is about the form; None where there is none to try."""
        resource = row.resource
        if row.type is None or not _is_open(row):
            return None
        if row.type.method == "PATCH" and operation == Operation.CHANGE and refuses_method(refusal):
            found = Alternative.PUT
        elif not row.type.wrapped_in and _misses_key(row, refusal):
            found = Alternative.WRAPPED
        else:
            self._note_refusal(row, operation, refusal)
            return None
        verdict = self._known.verdict(resource, operation, found)
        if verdict == Verdict.TAKEN:  # another thread found that out meanwhile
            return _with(row, found)
        if verdict == Verdict.REFUSED or (resource, operation) in self._proved:
            return None
        if not (self._is_there(resource, target_id) if found == Alternative.PUT else self._may_be_wrapped(row)):
            return None
        self._known.learn(resource, operation, found, Verdict.BEGUN)
        return _with(row, found)

    def accepted(self, row: PlanRow, operation: Operation, target_id: int, record: Mapping[str, Any]) -> str:
        """Note that a write succeeded, by the record as the target then has it. Returns why it did not: the target ignored the key."""
        if row.type is not None and row.type.method == "PUT":
            with self._lock:
                self._whole.forget(row.resource, target_id)
        trial = self._trial(row, operation)
        if Alternative.WRAPPED in trial and row.type is not None:
            shown = self._shown(row, operation, target_id, record)
            if shown and not self._is_kept(row, shown):
                self._known.learn(row.resource, operation, Alternative.WRAPPED, Verdict.REFUSED)
                return (
                    f"The service answered with success, and ignored the key `{row.type.wrapped_in}` around the record."
                )
            if not shown:
                return ""
        for alternative in trial:
            self._known.learn(row.resource, operation, alternative, Verdict.TAKEN)
        self._proved.add((row.resource, operation))
        return ""

    def _shown(
        self, row: PlanRow, operation: Operation, target_id: int, record: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The record of a response as the target has it, read back where the response does not show that; empty where nothing does."""
        if operation == Operation.CREATE:
            if row.type is not None and any(row.type.has(record, name) for name in row.expected):
                return record
            return self._first.read(row, record)
        with self._lock:
            return self._whole.read(row.resource, target_id) or {}

    def is_on_trial(self, row: PlanRow) -> bool:
        """Whether a new record of this resource may be an empty one, of a body whose key was ignored."""
        verdict = self._known.verdict(row.resource, Operation.CREATE, Alternative.WRAPPED)
        return _is_open(row) and verdict == Verdict.BEGUN

    def repaired(self, row: PlanRow, number: int, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """Fill a record that was created empty because its key was ignored; returns it as it is then.

        `row`: as it was sent. `number`: the entry of its creation, which is done: the record is known, whatever comes. Raises
        `FailedWriteError` where it stays empty.
        """
        target_id = int(record["id"])
        if row.type is None or not (ignored := self.accepted(row, Operation.CREATE, target_id, record)):
            return record
        message = f"Record {target_id} was created empty. {ignored} The next plan says what it lacks."
        shown = self._shown(row, Operation.CREATE, target_id, record)
        held = self._digests.of_response(row, shown, row.expected)
        self._journal.done(number, target_id=target_id, wanted=held, held=held, message=message)
        bare = msgspec.structs.replace(row, type=msgspec.structs.replace(row.type, wrapped_in=""))
        try:
            method, body = self.change_request(self.known(bare, Operation.CHANGE), target_id, row.payload)
            self._client.write(method, f"{row.resource}/{target_id}", body)
            with self._lock:
                self._whole.forget(row.resource, target_id)
        except RefusedError as refusal:
            raise FailedWriteError(f"{message} {refusal}") from None
        if not self._is_kept(row, filled := self._first.read(row, record)):
            raise FailedWriteError(message)
        self._journal.done(
            number, target_id=target_id, wanted=row.expected, held=held
        )  # the writer enters what it holds now
        return filled

    def _note_refusal(self, row: PlanRow, operation: Operation, refusal: RefusedError) -> None:
        """Note that the target refuses an alternative as such; what may be about the record alone says nothing about the form."""
        for alternative in self._trial(row, operation):
            about_form = (
                refuses_method(refusal)
                if alternative == Alternative.PUT
                else _names_key(row, refusal) or _lacks_all(row, refusal)
            )
            if about_form:
                self._known.learn(row.resource, operation, alternative, Verdict.REFUSED)

    def _trial(self, row: PlanRow, operation: Operation) -> list[Alternative]:
        """The alternatives of which a row is the trial."""
        if row.type is None or not _is_open(row):
            return []
        used = {Alternative.PUT: row.type.method == "PUT", Alternative.WRAPPED: bool(row.type.wrapped_in)}
        verdicts = {one: self._known.verdict(row.resource, operation, one) for one in used if used[one]}
        return [one for one, verdict in verdicts.items() if verdict == Verdict.BEGUN]

    def _is_there(self, resource: str, number: int | None) -> bool:
        """Whether the target has a record: a PUT of one that is gone could create it."""
        with self._lock:
            return number is not None and self._whole.read(resource, number) is not None

    def _may_be_wrapped(self, row: PlanRow) -> bool:
        """Whether a body may be tried in a key: a PUT whose key is ignored would empty the record, so only where creates have one."""
        verdict = self._known.verdict(row.resource, Operation.CREATE, Alternative.WRAPPED)
        return row.type is not None and (row.type.method != "PUT" or verdict == Verdict.TAKEN)

    def _is_kept(self, row: PlanRow, record: Mapping[str, Any]) -> bool:
        """Whether a record has most of what was sent; an empty one may have defaults."""
        wanted = {name: value for name in row.payload if (value := row.expected.get(name)) is not None}
        return has_most(self._digests.of_response(row, record, wanted) if record else {}, wanted)

    def close(self) -> None:
        """Give back what is held."""
        self._whole.close()


def key_of(resource: str) -> str:
    """The key that may be around a record."""
    return noun(resource).replace(" ", "_")


def _is_open(row: PlanRow) -> bool:
    """Whether neither a document nor a description says in which form the writes of a row are sent."""
    return row.type is not None and row.type.source == Source.RECORDS and row.resource != USERS


def _with(row: PlanRow, alternative: Alternative) -> PlanRow:
    if row.type is None:
        return row
    if alternative == Alternative.PUT:
        changed = msgspec.structs.replace(row.type, method="PUT")
    else:
        changed = msgspec.structs.replace(row.type, wrapped_in=key_of(row.resource))
    return msgspec.structs.replace(row, type=changed)


def _names_key(row: PlanRow, refusal: RefusedError) -> bool:
    """Whether a refusal of the content names the key around a record, and no field of it."""
    words = words_of(refusal)
    fields = {name.lower() for name in (*row.payload, *(row.type.fields if row.type else ()))}
    return refusal.is_about_content and key_of(row.resource) in words and not words & fields


def _misses_key(row: PlanRow, refusal: RefusedError) -> bool:
    """Whether a refusal says that the key around the record is missing."""
    return _names_key(row, refusal) and bool(words_of(refusal) & _MISSING)


def _lacks_all(row: PlanRow, refusal: RefusedError) -> bool:
    """Whether a refusal misses a field that was sent inside of the key."""
    words = words_of(refusal)
    return refusal.is_about_content and bool(words & _MISSING) and any(name.lower() in words for name in row.payload)
