"""The form of each request that writes: as the operator's settings say, else the target's description, else the service's document.

No form is tried. Where nothing describes one and the target refuses it, the message shows the setting that says another one.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from pipelines.errors import RefusedError
from pipelines.inventory import LIST_PATHS, nested_resource, noun, plural, record_path
from pipelines.migration.apply.row_result import LeftRowError
from pipelines.migration.model.actions import Action
from pipelines.migration.model.field_mapping import PLAIN, id_of, several
from pipelines.migration.model.journal_entries import WriteKind
from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.resource_types import PUBLICATIONS, ResourceType, Source
from pipelines.migration.model.step import Request, Step
from pipelines.records.additional_fields import is_managed
from pipelines.records.files import COVER, PRESIGN
from pipelines.records.paths import members_apart, nested, objects_of
from pipelines.records.tables.registry import leading_key
from pipelines.records.values import RecordId
from pipelines.shapes.model import Description, FieldSchema


class StoppedResourceError(LeftRowError):
    """The target refused the form of this resource's requests too often: the row is left."""


class RequestForms:
    """The forms of the writes of one run, from several threads at once. `current`: reads a record as it is now.

    The kind of a write is `PATCH` for every change of a record.
    """

    def __init__(self, step: Step, current: Callable[[str, RecordId], Mapping[str, Any] | None]) -> None:
        self._step = step
        self._description = step.plan.facts.description
        self._types = step.types
        self._current = current
        self._begun = step.journal.now()
        self._lock = threading.RLock()
        self._taken: set[tuple[str, WriteKind]] = set()
        """What the target took in this run, or in an earlier one."""
        self._refused: Counter[str] = Counter()
        """Resource → rows whose form was refused."""

    @contextmanager
    def sending(self, row: PlanRow, kind: WriteKind) -> Iterator[None]:
        """Write a row of which nothing describes the form alone, until the target took one: the others profit from the answer.

        Raises `StoppedResourceError` where the target refused too many.
        """
        self._check(row.resource)
        if not self.is_open(row, kind) or self.is_taken(row, kind):
            yield
            return
        with self._lock:
            self._check(row.resource)
            yield

    def _check(self, resource: str) -> None:
        if self._refused[resource] >= self._step.limits.refused_forms:
            raise StoppedResourceError(resource)

    def is_taken(self, row: PlanRow, kind: WriteKind) -> bool:
        """Whether the target took such a request, in this run or in an earlier one."""
        key, kinds = (row.resource, kind), (kind, WriteKind.LINK) if kind == WriteKind.PATCH else (kind,)
        if key not in self._taken and self._step.journal.has_done(row.resource, kinds):
            self._taken.add(key)
        return key in self._taken

    def is_open(self, row: PlanRow, kind: WriteKind) -> bool:
        """Whether neither the document nor the target's description says in which form this is sent."""
        resource_type = self._types[row.resource]
        if kind == WriteKind.MERGE:
            return resource_type.merge is not None and not resource_type.merge.described
        return resource_type.known_from == Source.RECORDS and not resource_type.documented

    def create(self, row: PlanRow, payload: Mapping[str, Any]) -> Request:
        """The request that creates the record of a row."""
        resource_type = self._types[row.resource]
        content = nested(self._sent(resource_type, payload))
        path = resource_type.create or LIST_PATHS[row.resource]
        body = _wrapped(resource_type.wrapped_in, content)
        return Request("POST", path, body, content.keys(), resource_type.answer_id)

    def change(self, row: PlanRow, changes: Mapping[str, Any]) -> Request:
        """The request that changes fields of a record. A PUT replaces it, so that all other fields are sent again as they are now.

        So are the other members of an object of which one is changed; and what the objects of a list have besides, unless this run created
        the record. Raises `RefusedError` where the target has no such record then.
        """
        resource_type, target_id = self._types[row.resource], row.existing_target_id
        content = self._sent(resource_type, changes)
        path = record_path(row.resource, target_id)
        replaces, objects = resource_type.method == "PUT", objects_of(content)
        again = {
            name for name in resource_type.fields.keys() - changes.keys() if replaces or objects_of([name]) & objects
        }
        fields = resource_type.fields
        lists = [name for name, value in changes.items() if value and resource_type.has_objects(name)]
        lists = lists if lists and self._may_have_more(row) else []
        if replaces or again or lists:
            record = self._current(row.resource, target_id)
            if record is None:
                text = f"{row.resource}/{target_id} was not changed: the target does not list it any more."
                raise RefusedError(text, status=HTTPStatus.NOT_FOUND, code="RecordNotFound")
            kept = self._kept(resource_type, record, again)
            content = {
                name: value for name, value in kept.items() if replaces or objects_of([name]) & objects
            } | content
            for name in lists:
                content[name] = fields[name].with_unknown(name, content[name], record, self._takes(row.resource, name))
        content = nested(content)
        if resource_type.record_type:
            taken = self._writable(row.resource)
            named = {"type": resource_type.record_type, "id": str(target_id)}
            content = {name: value for name, value in named.items() if taken is None or name in taken} | content
        return Request(resource_type.method, path, _wrapped(resource_type.wrapped_in, content), content.keys())

    def action(self, row: PlanRow, field: str) -> Request:
        """The request that sets a field of a new record."""
        method, path = self._types[row.resource].after_create[field].split()
        return Request(method, f"{record_path(row.resource, row.target_id)}/{path}", {})

    def posted(self, row: PlanRow) -> dict[str, list[RecordId]]:
        """The references of a row that are added to lists below its record, each with its ids."""
        resource_type = self._types[row.resource]
        return {
            name: [number for entry in several(row.payload[name]) if (number := id_of(entry)) is not None]
            for name in resource_type.posted
            if name in row.payload
        }

    def addition(self, row: PlanRow, name: str) -> tuple[str, str]:
        """The path of the list below a record to which a reference is added, and the key of the body."""
        below, key = self._types[row.resource].posted[name].split()
        return f"{record_path(row.resource, row.target_id)}/{below}", key

    def removes(self, resource: str, name: str) -> bool:
        """Whether the target describes a DELETE of one entry of that list, whose entries have no ids beside those that were added."""
        described = self._description or Description(address="")
        below, _key = self._types[resource].posted[name].split()
        path = f"/{LIST_PATHS[resource]}/{{}}/{below}"
        entry = described.lists.get(path, [])
        leading = leading_key(nested_resource(f"{resource}/{below}"), entry)
        return f"DELETE {path}/{{}}" in described.operations and {"id", leading}.intersection(entry) == {leading}

    def _kept(self, resource_type: ResourceType, record: Mapping[str, Any], again: Container[str]) -> dict[str, Any]:
        """The fields of a record that a PUT sends again: as the target has them, but for references, which have a form of their own.

        `again`: those of them that the mapping knows.
        """
        values, unsendable = resource_type.whole_values(record), resource_type.form(record).why
        known_keys = {
            key for name in resource_type.fields if name not in unsendable for key in resource_type.keys_of(name)
        }
        writable = self._writable(resource_type.resource)
        unknown = {
            key: value
            for key, value in members_apart(record, objects_of(known_keys)).items()
            if key not in known_keys and not is_managed(key) and (writable is None or key.partition("/")[0] in writable)
        }
        known = dict[str, Any]()
        for name, value in values.items():
            if name in again:
                known |= resource_type.fields.get(name, PLAIN).payload_again(name, value, record)
        described = writable or {}
        return {key: _without_read_only(value, described.get(key)) for key, value in (unknown | known).items()}

    def _may_have_more(self, row: PlanRow) -> bool:
        """Whether people may have changed a record: this run did not create it."""
        creation = self._step.entries(row).get((WriteKind.CREATE, "")) if row.action == Action.CREATE else None
        return creation is None or creation.begun_at < self._begun

    def _takes(self, resource: str, name: str) -> Callable[[str], bool]:
        """Returns whether the target takes a member of the objects of a list; where nothing says so, any but what services fill."""
        described = (self._writable(resource) or {}).get(name)
        members = described.entries.members if described and described.entries else {}
        taken = {member for member, field in members.items() if not field.read_only}
        return lambda member: not is_managed(member) and (not members or member in taken)

    def _writable(self, resource: str) -> dict[str, FieldSchema] | None:
        """The fields that the description has in a change; None where it has none."""
        described = self._description.resources.get(resource) if self._description else None
        if described is None or described.change is None:
            return None
        return described.change.writable

    def merge(self, row: PlanRow, number: RecordId) -> Request:
        """The request that merges a record of the target into that of a row."""
        request = self._types[row.resource].merge
        if request is None:
            raise ValueError(f"{row.resource} {row.source_id} has no way to merge")
        path, body = request.path.replace("{id}", quote(str(number), safe="")), {request.field: row.existing_target_id}
        return Request(request.method, path, _wrapped(request.wrapped_in, body), [request.field])

    def presign(self, kind: str) -> str:
        """The path that signs the form of an upload."""
        return self._types[PUBLICATIONS].presign.get(kind, PRESIGN[kind])

    def explained(self, row: PlanRow, kind: WriteKind, refusal: RefusedError) -> str:
        """The message of a refusal; where it may be about the form, or a field that nothing proves, with what says another one.

        Such refusals are counted as long as the target took no such request.
        """
        settings, sentences = self._other_form(row, kind, refusal), [str(refusal)]
        if settings:
            filled_in = ", ".join(f"{name} = {json.dumps(value)}" for name, value in settings.items())
            sentences.append(
                "If this is about the form of the request, say in bookferry.toml in which form the target takes "
                f"{plural(row.resource)}, and apply the plan again: `{self._table(row.resource)}` {filled_in}"
            )
        unproved = self._types[row.resource].undocumented.intersection(row.payload)
        if unproved and refusal.is_about_content:
            ends = self._step.plan.facts
            sentences.append(
                f"If the target does not take {', '.join(sorted(unproved))}: `bookferry migrate map {ends.source.tenant} "
                f"{ends.target.tenant}` writes the mapping file; take it out there, and make a new plan."
            )
        if len(sentences) > 1 and not self.is_taken(row, kind):
            with self._lock:
                self._refused[row.resource] += 1
        return " ".join(sentences)

    def unsigned(self, kind: str, refusal: RefusedError) -> str:
        """The message of a refusal to sign the form of an upload; with the setting that says another path where there is no such one."""
        if not _refuses_address(refusal):
            return str(refusal)
        return (
            f"{refusal} If the target signs it elsewhere, say so in bookferry.toml: `{self._table(PUBLICATIONS)}` "
            f"{'cover_presign' if kind == COVER else 'presign'} = {json.dumps(self.presign(kind))}"
        )

    def _other_form(self, row: PlanRow, kind: WriteKind, refusal: RefusedError) -> dict[str, Any]:
        """The settings that may have to be others after a refusal, as far as they are known; none where it is about the record."""
        is_first = not self.is_taken(row, kind)
        is_open, is_address = is_first and self.is_open(row, kind), is_first and _refuses_address(refusal)
        if kind == WriteKind.MERGE and (is_address or (is_open and refusal.is_about_content)):
            merge = self._types[row.resource].merge
            return {"merge": merge.path, "merge_method": merge.method, "merge_field": merge.field} if merge else {}
        if is_address and kind == WriteKind.PATCH:
            return {} if self._types[row.resource].documented else {"method": "PUT"}
        if is_address:
            return {"create": self._types[row.resource].create or LIST_PATHS[row.resource]}
        if not is_open or not refusal.is_about_content:
            return {}
        return {"wrapped_in": noun(row.resource).replace(" ", "_")}

    def _table(self, resource: str) -> str:
        return f"[tenants.{self._step.plan.facts.target.tenant}.requests.{resource}]"

    def _sent(self, resource_type: ResourceType, values: Mapping[str, Any]) -> dict[str, Any]:
        sent = dict[str, Any]()
        for name, value in values.items():
            sent |= resource_type.fields.get(name, PLAIN).payload(name, value)
        return sent


def _without_read_only(value: Any, described: FieldSchema | None) -> Any:
    """A value without the members that the target fills itself, as it says."""
    if described is None:
        return value
    if isinstance(value, list):
        return [_without_read_only(entry, described.entries or described) for entry in value]
    if not isinstance(value, dict):
        return value
    members = described.members
    return {
        name: _without_read_only(member, members.get(name))
        for name, member in value.items()
        if name not in members or not members[name].read_only
    }


def _wrapped(key: str, content: dict[str, Any]) -> dict[str, Any]:
    return {key: content} if key else content


def _refuses_address(refusal: RefusedError) -> bool:
    """Whether a refusal is about the method, the media type or the address; a 404 with the code of a record says that of a record."""
    missing = refusal.status == HTTPStatus.NOT_FOUND and refusal.code != "RecordNotFound"
    return missing or refusal.status in {HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.UNSUPPORTED_MEDIA_TYPE}
