"""How the records of a resource are moved: the fields that are sent, the references, and the key of a record.

Publications and users are documented. Of the other resources the service's document shows neither fields nor payloads:
`plan/learned_types.py` learns them from the target's description and from the records; the types here are what we assume where nothing is
known (service.md#other-resources).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple, Self

import msgspec

from pipelines.inventory import RESOURCES
from pipelines.migration.model.actions import WRITTEN_ACTIONS, Action
from pipelines.migration.model.comparable import Form, digest
from pipelines.migration.model.field_mapping import PLAIN, FieldMapping, plain, plain_text, several
from pipelines.records.additional_fields import filled_within, is_empty, is_managed, is_sent_empty
from pipelines.records.files import ASSET, COVER
from pipelines.records.left_out import LeftOut
from pipelines.records.paths import ATTRIBUTES, members_apart, objects_of, value_at
from pipelines.records.residue import PICTURES, residue_json, without_addresses, without_signatures
from pipelines.records.shapes.field_names import is_of_own_kind, resource_named, stem_of
from pipelines.records.shapes.observation import kind_of
from pipelines.records.tables.registry import PERSONAL
from pipelines.records.values import RecordId, compact_json, text_of
from pipelines.settings.write_requests import RequestForm

PUBLICATIONS, USERS, LOCATIONS, AUTHORITIES = "publications", "users", "locations", "authorities"


class Source(StrEnum):
    """Where the fields of a resource in the target are known from."""

    DESCRIPTION = "description"
    """The target's own description."""
    RECORDS = "records"
    """The records of both libraries; whether the target takes all of their fields is not proved."""
    ASSUMED = "assumed"
    """What we assume (service.md#other-resources)."""


class MergeRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one record is merged into another; by default as we assume (service.md#other-resources)."""

    path: str
    """`{id}` is the id of the record that goes."""
    method: str = "PATCH"
    field: str = "into_id"
    """The field of the body with the id of the record that remains."""
    wrapped_in: str = ""
    described: bool = False
    """Whether the target's description has it."""


class Stage(NamedTuple):
    """A kind of evidence that two records are the same."""

    name: str
    """In `comparable.KEYS`."""
    matched_by: str
    """In a plan."""
    gives_way: bool = False
    """Whether identifiers that contradict each other make a pair of this kind two records."""


_JSON_TYPES: dict[type, tuple[str, ...]] = {
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
    str: ("string",),
    list: ("array",),
    dict: ("object",),
}
"""Type of a decoded value → the names that JSON Schema has for it."""


LINKS = ("links", "_links")
"""Fields with addresses of other records by their names."""

OF_EACH_OBJECT = frozenset({"id", "self", *LINKS})
"""What a service gives to every object within a record, of which nobody misses anything."""


class FieldRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the target takes in a field; any value where nothing is said."""

    choices: tuple[str, ...] = ()
    """The values, or the entries of a list, as text."""
    types: tuple[str, ...] = ()
    """Names of JSON Schema."""
    entry_types: tuple[str, ...] = ()
    """The same for the entries of a list."""
    kinds: tuple[str, ...] = ()
    """The kinds of all texts where these have a format: a date, or a time, for which services take a date, too."""

    def refusal(self, value: Any) -> LeftOut | None:
        """Why the target does not take a value that is not null; None where it does."""
        if self.choices and not {text_of(entry) for entry in several(value)} <= {*self.choices}:
            return LeftOut.NOT_A_CHOICE
        if self.kinds and any(type(entry) is str and kind_of(entry) not in self.kinds for entry in several(value)):
            return LeftOut.OTHER_TYPE
        entries = value if type(value) is list else ()
        fits = _is_of(value, self.types) and all(
            _is_of(entry, self.entry_types) for entry in entries if entry is not None
        )
        return None if fits else LeftOut.OTHER_TYPE


def _is_of(value: Any, types: tuple[str, ...]) -> bool:
    return not types or not {*types}.isdisjoint(_JSON_TYPES.get(type(value), ()))


class _ReadKeys(NamedTuple):
    """Where the fields of a resource are read in its records."""

    read: set[str]
    """The keys, or paths."""
    objects: set[str]
    """The objects that are taken apart."""
    in_lists: tuple[str, ...]
    """The beginnings of paths in lists of objects."""
    in_records: tuple[str, ...]
    """The beginnings of paths in objects that are records where they have an id: of their members only those left out by name are named."""
    in_whole: tuple[str, ...]
    """The same in objects that are read whole."""


def _beginnings(holders: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{holder}/" for holder in holders)


class ResourceType(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """How the records of one resource are moved. Publications, which have most of everything, are a `PublicationType`."""

    resource: str
    fields: dict[str, FieldMapping]
    """The fields that are sent and compared, in the order in which they are sent."""
    keys: tuple[tuple[str, ...], ...]
    """The fields that name a record for people: the first group of which it has all. In the last group only the first field is required."""
    guarded: tuple[str, ...] = ()
    """Fields that are never added to a record that exists: a person is asked."""
    created: bool = True
    """Whether the service lets a program create records."""
    takes: dict[str, FieldRule] = {}
    """Field → the values that the target takes; a field that is absent takes any."""
    required: tuple[str, ...] = ()
    """The fields without which the target takes no new record."""
    left_out: dict[str, str] = {}
    """Field of the source that is not sent → why: a `LeftOut`."""
    known_from: str = Source.ASSUMED
    """Where all this is known from."""
    unproved: tuple[str, ...] = ()
    """Fields that are sent although neither a description nor the target's records have them."""
    wrapped_in: str = ""
    """The key around a record in a payload, if there is one."""
    method: str = "PATCH"
    """The method of a change."""
    record_type: str = ""
    """The `type` of its records in JSON:API, whose every change names it with the id; empty for other forms of records."""
    create: str = ""
    """The path to which new records are sent; that of the list if it is empty."""
    answer_id: str = ""
    """Where the answer to a creation has the id; if it is empty, in its one object that has one."""
    presign: dict[str, str] = {}
    """Kind of a file → the path that signs the form of its upload; the documented one where it has none."""
    merge: MergeRequest | None = None
    """How its records are merged; none for those that are not, and where the target's description is not clear."""
    after_create: dict[str, str] = {}
    """Field, or field and value such as `state=published` → the request that sets it in a new record: method, and path below the record."""

    @cached_property
    def references(self) -> dict[str, tuple[str, ...]]:
        """Field → the resources that its ids refer to: a plan and a drill of this one need a snapshot that has them (plan/scope.py)."""
        return {name: field.resources for name, field in self.fields.items() if field.refers}

    @cached_property
    def referred(self) -> frozenset[str]:
        """All resources to which its records refer."""
        return frozenset(resource for resources in self.references.values() for resource in resources)

    @cached_property
    def parents(self) -> frozenset[str]:
        """Fields with the one record of its own resource above a record that is known by its name, such as the room of a shelf."""
        fields = {} if self.documented else self.fields
        own = (name for name, field in fields.items() if field.leads_to == self.resource and not field.many)
        return frozenset(filter(is_of_own_kind, own))

    @cached_property
    def lists(self) -> frozenset[str]:
        """Fields with several values in no order."""
        return frozenset(name for name, field in self.fields.items() if field.many or field.any_order)

    @cached_property
    def fills(self) -> dict[str, Any]:
        """Field → what a new record gets that has nothing there."""
        return {name: field.fill for name, field in self.fields.items() if field.fill is not None}

    @cached_property
    def posted(self) -> dict[str, str]:
        """Reference → how its ids are added to a list below the record."""
        return {name: self.fields[name].post for name in self.references if self.fields[name].post}

    def without_parts_of_links(self) -> Self:
        """The same without the rest of objects none of whose references is sent: what they say besides means nothing alone."""
        linked = objects_of(path for path, why in self.left_out.items() if why == LeftOut.LINK)
        unsent = dict.fromkeys(linked, LeftOut.LINK) | {
            name.rpartition("/")[0]: LeftOut.UNKNOWN_REFERENCE
            for name, why in self.left_out.items()
            if why == LeftOut.UNKNOWN_REFERENCE
        }
        unsent = {holder: why for holder, why in unsent.items() if holder not in objects_of(self.references)}
        holders = {name: name.rpartition("/")[0] for name in self.fields if "/" in name}
        lost = {
            name: unsent[holder]
            for name, holder in holders.items()
            if holder in unsent and not holder.endswith(ATTRIBUTES)
        }
        fields = {name: field for name, field in self.fields.items() if name not in lost}
        return msgspec.structs.replace(self, fields=fields, left_out=self.left_out | lost)

    def sent_by(self, form: RequestForm) -> Self:
        """The same whose writes have the form that a person says, as far as it says anything."""
        wrapped_in, merge = form.wrapped_in, self.merge
        if merge is not None:
            merge = msgspec.structs.replace(
                merge,
                path=form.merge or merge.path,
                method=form.merge_method or merge.method,
                field=form.merge_field or merge.field,
                wrapped_in=merge.wrapped_in if wrapped_in is None else wrapped_in,
            )
        return msgspec.structs.replace(
            self,
            method=form.method or self.method,
            record_type=form.record_type or self.record_type,
            create=form.create or self.create,
            answer_id=form.answer_id or self.answer_id,
            presign=self.presign
            | {kind: path for kind, path in ((ASSET, form.presign), (COVER, form.cover_presign)) if path},
            wrapped_in=self.wrapped_in if wrapped_in is None else wrapped_in,
            merge=merge,
        )

    @property
    def personal(self) -> bool:
        """Whether its records are personal data."""
        return self.resource in PERSONAL

    @property
    def has_files(self) -> bool:
        """Whether its records have files and covers."""
        return False

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The kinds of evidence by which its records are matched, the strongest first."""
        return NAMES

    @property
    def key_fields(self) -> frozenset[str]:
        """The fields from which the keys of a record are made."""
        return frozenset(name for names in self.keys for name in names)

    @property
    def dates(self) -> tuple[str, ...]:
        """Fields with a date that may be sent as the first day of its year or month."""
        return ()

    @property
    def documented(self) -> bool:
        """Whether the service's document says how its records are created and changed (service.md#users, service.md#publications)."""
        return self.resource == USERS

    @property
    def ruled(self) -> frozenset[str]:
        """Keys of a record that have rules of their own, so that nothing is learned of them."""
        return PICTURES if self.resource == USERS else frozenset()

    @property
    def learned(self) -> Collection[str]:
        """The fields that are read as they were learned."""
        return self.fields

    @cached_property
    def parts(self) -> dict[str, FieldMapping]:
        """The fields by their paths, and all that stands in the entries of lists."""
        return {path: part for name, field in self.fields.items() for path, part in field.parts(name)}

    @property
    def sends_unproved(self) -> bool:
        """Whether fields are sent of which nothing shows that the target has them."""
        return True

    @property
    def undocumented(self) -> frozenset[str]:
        """Fields that the service may ignore."""
        return frozenset(self.unproved)

    @property
    def filled(self) -> frozenset[str]:
        """Fields that the service may fill itself in a new record, or a plan does, so that nothing is expected where none was sent."""
        return frozenset(self.fills)

    @property
    def needs_references(self) -> bool:
        """Whether a record is not created where the target lacks one to which it refers."""
        return True

    @property
    def sent_without_references(self) -> frozenset[str]:
        """Lists whose objects say something without the records to which they lead, such as authors.

        An object is sent at once without one that is not there yet, and without one that the target lacks; there the target keeps its own.
        """
        return frozenset()

    @property
    def of_target(self) -> Self:
        """The same for records of the target, which are compared whatever their values are."""
        fields = {name: field.of_target(name) for name, field in self.fields.items()}
        return msgspec.structs.replace(self, fields=fields, takes={})

    def form(self, record: Mapping[str, Any]) -> Form:
        """What is compared and sent of a record; references are those of its own library."""
        values, why = self._sent_and_left_out(record)
        unsent = {name: self._read(record, name) for name in why}
        for path, value, reason in (
            *self._filled_within(record),
            *self._unsent_links(record),
            *self._unsent(record),
        ):
            unsent[path], why[path] = value, reason
        return Form(values, without_signed_addresses(unsent), why, self.empty_values(record))

    def files(self, _record: Mapping[str, Any]) -> str | None:
        """What a record says of its files, as JSON; None where it has none."""
        return None

    def match_keys(self, values: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        """Yield stage, type and value of each key of a record; its references are those of the target."""
        for stage, folded in zip(NAMES, (False, True), strict=True):
            if (key := self.key(values, folded=folded)) is not None:
                yield stage.name, stage.name, key

    def content(self, compared: Mapping[str, str]) -> str | None:
        """One digest of all compared fields, which is the same for records with the same content; None for an empty record."""
        return content_digest(compared, sorted(compared))

    def why_missing(self, _name: str) -> LeftOut:
        """Why a reference is not sent that leads to a record that the target lacks."""
        return LeftOut.NO_RECORD

    def values(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a record that are sent: an empty field is absent, a reference is its id."""
        return self._sent_and_left_out(record)[0]

    def _sent_and_left_out(self, record: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        """Field → value that is sent; and field → why its value is not."""
        values, why = dict[str, Any](), dict[str, str]()
        for name in self.learned:
            value = self._read(record, name)
            if is_empty(value):
                continue
            try:
                value = self.fields[name].form_of(value)
            except ValueError:
                why[name] = self._why_unsendable(name, value)
                continue
            rule = self.takes.get(name)
            if rule is not None and (refusal := rule.refusal(value)) is not None:
                why[name] = refusal
            elif not is_empty(value):
                values[name] = value
        return values, why

    def _unsent_links(self, record: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
        """Yield path, value and reason of each reference that stands among addresses, as in HAL."""
        for holder in LINKS:
            links = record.get(holder)
            for name, link in links.items() if isinstance(links, dict) else ():
                resource = resource_named(stem_of(name))
                is_sent = not {f"{holder}/{name}"}.isdisjoint(self._read_keys.read | self._read_keys.objects)
                if link and resource and not is_sent and resource not in {self.resource, *self.referred}:
                    yield f"{holder}.{name}", link, LeftOut.LINK

    def _why_unsendable(self, name: str, value: Any) -> LeftOut:
        if name in self.references or self.fields[name].asks_about(value):
            return LeftOut.UNKNOWN_REFERENCE
        text = compact_json(without_addresses(value))
        return LeftOut.SIGNED if without_signatures(text) != text else LeftOut.NOT_SENDABLE

    def empty_values(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a record with an empty text or list, which a new record gets as it is, and what fills those that it lacks.

        Those of users are documented, and only filled.
        """
        values = [(name, self._read(record, name)) for name in self.learned]
        filled = {name: self.fills[name] for name, value in values if name in self.fills and is_empty(value)}
        if self.resource == USERS:
            return filled
        return filled | {
            name: value
            for name, value in values
            if is_sent_empty(value)
            and name not in self.fills
            and (value == [] or name not in self.references)
            and self.takes.get(name, _ANY).refusal(value) is None
        }

    def whole_values(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a record as they stand, empty texts and lists too, which a PUT sends again and undo restores."""
        return self.values(record) | self.empty_values(record)

    def keys_of(self, name: str) -> tuple[str, ...]:
        """The keys of a record that may have a field, the best first."""
        return self.fields.get(name, PLAIN).keys_of(name)

    def has(self, record: Mapping[str, Any], name: str) -> bool:
        """Whether a record has a field, under any of the keys that it may have."""
        return any(value_at(record, key, ...) is not ... for key in self.keys_of(name))

    def has_objects(self, name: str) -> bool:
        """Whether a field is a list of objects, of which the mapping knows some members."""
        return bool(self.fields.get(name, PLAIN).entries)

    def _read(self, record: Mapping[str, Any], name: str) -> Any:
        return self.fields.get(name, PLAIN).read(record, name)

    @cached_property
    def _with_several_keys(self) -> list[tuple[str, FieldMapping]]:
        return [(name, field) for name, field in self.fields.items() if len(field.keys_of(name)) > 1]

    @cached_property
    def _read_keys(self) -> _ReadKeys:
        parts = self.parts
        lists = {key for path, part in parts.items() if part.entries for key in part.keys_of(path)}
        read = {key for path, part in parts.items() if not part.entries for key in part.keys_sent(path)}
        objects = objects_of([*read, *self.left_out]) | lists
        records = {holder for holder in objects - read if f"{holder}/id" in read and f"{holder}/type" not in read}
        return _ReadKeys(read, objects, _beginnings(lists), _beginnings(records), _beginnings(objects & read))

    def _unsent(self, record: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
        """Yield path, value and reason of each field that is not sent, whatever it has, and of the members of objects taken apart."""
        read, objects, in_lists, in_records, in_whole = self._read_keys
        apart = members_apart(record, objects)
        copies = (*in_whole, *(beginning for beginning in in_records if not is_empty(apart.get(f"{beginning}id"))))
        alone = {field.kind for name, field in self.fields.items() if field.kind and not self._read(record, name)}
        alone.update(key for name, field in self._with_several_keys for key in field.hidden(record, name))
        for path, value in apart.items():
            if is_empty(value) or value == [None]:
                continue
            is_left_out = path in self.left_out
            is_unread = (
                path not in read
                or path in alone
                or not (path.startswith(in_lists) or value_at(record, path, ...) is not ...)
            )
            above, _, name = path.rpartition("/")
            is_filled = is_managed(path) if above in ("", ATTRIBUTES) else name in OF_EACH_OBJECT
            is_filled = is_filled and not (
                above and name == "id" and any(type(entry) is not int for entry in several(value))
            )
            is_copy = path.startswith(copies) and path not in alone
            is_named = is_unread and (is_left_out or not is_filled) and not is_copy
            if ("/" in path and is_left_out) or is_named:
                unread = LeftOut.NOT_SHOWN if self.documented else LeftOut.NOT_MAPPED
                by_default = LeftOut.FILLED_BY_SERVICE if is_managed(path) or name == "id" else unread
                if path not in self._set_by_action:
                    yield path, value, self.left_out.get(path, by_default)
                elif value not in _NOT_SET:
                    yield path, value, LeftOut.BY_ACTION if self.action_of(path, value) else LeftOut.NOT_MAPPED

    @cached_property
    def _set_by_action(self) -> set[str]:
        return {key.partition("=")[0] for key in self.after_create}

    def action_of(self, path: str, value: Any) -> str:
        """Which of `after_create` sets this value; empty if none does. A field alone stands for a time, a number or `true`, and no word."""
        text = text_of(value) or ""
        if (of_value := f"{path}={text}") in self.after_create:
            return of_value
        is_word = isinstance(value, str) and not _DATE.match(text)
        return path if path in self.after_create and was_done(value) and not is_word else ""

    def _filled_within(self, record: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
        """Yield path, value and reason of what a service fills itself in objects that are sent as they stand."""
        for name in self.learned:
            filled = _filled_by_service(name, self.fields[name], self._read(record, name))
            yield from ((path, value, LeftOut.FILLED_BY_SERVICE) for path, value in filled)

    def redirected(self, values: dict[str, Any], merged: Mapping[tuple[str, RecordId], RecordId]) -> dict[str, Any]:
        """The values with references to the records that remain. `merged`: resource and id of a merged record → the one that remains."""
        for name in self.references if merged else ():
            value = values.get(name)
            if value is None:
                continue
            value = self.fields[name].with_ids(value, lambda *reference: merged.get(reference, reference[1]))
            is_set = name in self.lists and isinstance(value, list)
            values[name] = [*{compact_json(entry): entry for entry in value}.values()] if is_set else value
        return values

    def compared(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Field → JSON in canonical form, so that equal values are equal text; an empty field is absent."""
        return {name: self._text(name, value) for name, value in values.items() if not is_empty(value)}

    def digest_of(self, name: str, value: Any) -> str | None:
        """The digest of a field with this value, as it is sent."""
        return digest(self.compared_record({name: value}).get(name))

    def compared_record(self, record: Mapping[str, Any]) -> dict[str, str]:
        """The same of a record or a payload, in any of the forms in which its fields are read."""
        return self.compared(self.values(record))

    def _text(self, name: str, value: Any) -> str:
        if name == "email":
            value = _folded(value)
        elif name in self.lists and type(value) is list:
            return f"[{','.join(sorted({compact_json(entry) for entry in value}))}]"
        return compact_json(value)

    def key(self, values: Mapping[str, Any], *, folded: bool = True) -> str | None:
        """The key of a record, none where it has no such fields. `folded`: without regard to case."""
        normalised = _folded if folded else plain_text
        *whole, last = self.keys
        for names in whole:
            if all(not is_empty(values.get(name)) for name in names):
                return compact_json([names[0], *(normalised(values[name]) for name in names)])
        if is_empty(values.get(last[0])):
            return None
        return compact_json(
            [last[0], *(normalised(None if is_empty(values.get(name)) else values[name]) for name in last)]
        )

    def is_alike(self, _sent: Mapping[str, Any], _made: Mapping[str, Any]) -> bool:
        """Whether two records differ in nothing but what services set, drop or write otherwise by themselves."""
        return False

    def may_be(self, sent: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
        """Whether a record that differs from what was sent may be made of it."""
        key = self.key(self.values(sent))
        return key is not None and self.key(self.values(made)) == key

    def title(self, values: Mapping[str, Any]) -> str | None:
        """The title of a record, for people."""
        names = ("title", "name", "label", "barcode", "call_number", "email", *self.fields)
        return text_of(next((values[name] for name in names if isinstance(values.get(name), str)), None))


_ANY = FieldRule()


def _filled_by_service(path: str, field: FieldMapping, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield path and value of what a service fills itself in the objects of a field, and of the entries of a list, that are plain."""
    sent = {key for name, member in field.entries.items() for key in member.keys_of(name)}
    for entry in several(value) if field.entries else ():
        for name, member in field.entries.items() if isinstance(entry, dict) else ():
            yield from _filled_by_service(f"{path}/{name}", member, member.read(entry, name))
    if not field.refers:
        yield from (
            (inner, filled) for inner, filled in filled_within(path, value) if inner[len(path) + 1 :] not in sent
        )


_NOT_SET = (None, False, 0)
"""Values of a field that a request of its own sets, before that is sent."""


def was_done(value: Any) -> bool:
    """Whether a value says that something was done, and when. Services write the year 0, 1, 1970 or 9999 where nothing was."""
    if isinstance(value, str):
        return bool(value) and (_DATE.match(value) is None or _TIME.match(value) is not None)
    return value > 0 if isinstance(value, int | float) else bool(value)


_DATE = re.compile(r"\d{4}-\d\d-\d\d")
"""Matches a date or a time."""

_TIME = re.compile(r"(?!1970)(19[7-9]|2\d\d)\d")
"""Matches one at which a library may have done something."""

NAMES = (Stage("exact", "name"), Stage("folded", "name"))
"""The names of records as they are written, and without regard to case."""


def content_digest(compared: Mapping[str, str], names: Iterable[str]) -> str | None:
    """One digest of some compared fields; None for a record that has none of them."""
    content = "\n".join(f"{name}:{compared[name]}" for name in names if name in compared)
    return hashlib.sha256(content.encode()).hexdigest() if content else None


def without_signed_addresses(unsent: dict[str, Any]) -> dict[str, Any]:
    """Values that are not sent, as they may be stored (I10)."""
    text = residue_json(unsent)
    return {} if text is None else msgspec.json.decode(text)


RESOURCE_TYPES = {
    resource_type.resource: resource_type
    for resource_type in (
        ResourceType(
            AUTHORITIES,
            {**plain("name", "kind"), "variants": FieldMapping(any_order=True)},
            (("name", "kind"), ("name", "type"), ("name",)),
        ),
        ResourceType(
            USERS,
            {**plain("email", "name"), "roles": FieldMapping(any_order=True)},
            (("email",),),
            guarded=("roles",),
        ),
        ResourceType(
            "collections",
            {**plain("name", "description"), "publication_ids": FieldMapping(leads_to=PUBLICATIONS, many=True)},
            (("name",), ("title",)),
        ),
        ResourceType(LOCATIONS, plain("name", "note"), (("name",), ("title",)), created=False),
        ResourceType(
            "hard_copies",
            {
                "publication_id": FieldMapping(leads_to=PUBLICATIONS),
                "location_id": FieldMapping(leads_to=LOCATIONS),
                **plain("barcode", "call_number", "status", "acquired_on", "note"),
            },
            (("barcode",), ("publication_id", "location_id", "call_number")),
        ),
        ResourceType(
            "tasks",
            {
                **plain("title", "description"),
                "publication_id": FieldMapping(leads_to=PUBLICATIONS),
                "assignee_id": FieldMapping(leads_to=USERS),
                **plain("due_on"),
            },
            (("title", "publication_id", "assignee_id", "due_on"),),
        ),
    )
}
"""Resource → how it is moved."""

MERGEABLE = (AUTHORITIES, LOCATIONS)
"""Resources whose records can be merged (service.md#other-resources)."""

REFERENCES = frozenset(name for resource_type in RESOURCE_TYPES.values() for name in resource_type.references)
"""Every field with ids of other records."""

BEFORE = (USERS,)
AFTER = (AUTHORITIES, "collections", LOCATIONS, "hard_copies", "tasks")
"""The resources that are written before the publications, and after them: a record is written after those that it refers to.

Authorities come after the publications, because the service may make some by itself, of the authors (service.md#other-resources).
"""

WRITING_ORDER = (*BEFORE, PUBLICATIONS, *AFTER)
"""All resources, in the order in which they are written."""


def is_written_later(referred: str, resource: str) -> bool:
    """Whether records of a resource may refer to records that do not exist yet when they are created."""
    return WRITING_ORDER.index(referred) >= WRITING_ORDER.index(resource)


COMPLETED = "completed_at"
"""The field of a completed task. No such task is sent, because nothing documents how to create one, and it would be open again."""


def chosen_resources(names: Iterable[str]) -> tuple[str, ...]:
    """The other resources that a person names, in the order in which they are written. Raises `ValueError` for an unknown one."""
    chosen = {*names} - {PUBLICATIONS, ""}
    if unknown := sorted(chosen - {*RESOURCES}):
        raise ValueError(f"{', '.join(unknown)}: not a resource; those are {', '.join(RESOURCES)}")
    if "hard_copies" in chosen:
        chosen.add(LOCATIONS)
    return tuple(name for name in (*BEFORE, *AFTER) if name in chosen)


def referenced_resources(resources: Collection[str]) -> tuple[str, ...]:
    """The resources that are read only because these refer to them."""
    needed = {name for resource in resources for name in RESOURCE_TYPES[resource].referred}
    return tuple(name for name in (*BEFORE, *AFTER) if name in needed and name not in resources)


def may_appear(counts: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether the service may make authorities by itself before a plan creates them.

    `counts`: resource → action → records, in the order of writing.
    """
    order = [*counts]
    if AUTHORITIES not in counts or order.index(AUTHORITIES) < order.index(PUBLICATIONS):
        return False
    publications = counts[PUBLICATIONS]
    return bool(counts[AUTHORITIES].get(Action.CREATE)) and any(publications.get(action) for action in WRITTEN_ACTIONS)


def _folded(value: Any) -> Any:
    """The same in lower case."""
    return plain_text(value.casefold()) if isinstance(value, str) else value
