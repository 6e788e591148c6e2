"""The other resources, which are moved where a person names them: the fields that are sent, the references, and the key of a record.

The service's documentation shows neither their fields nor their payloads, except for users. `plan/learned_types.py` learns them from
the target's description and from the records; the types here are what we assume where nothing is known (service.md#other-resources).
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from pipelines.inventory import RESOURCES
from pipelines.migration.model.actions import WRITTEN_ACTIONS, Action
from pipelines.migration.model.comparable import Form
from pipelines.records.additional_fields import FieldRule, in_order, is_managed, is_sent_empty, plain
from pipelines.records.residue import IGNORED, residue_json
from pipelines.records.tables.registry import PERSONAL
from pipelines.records.values import compact_json, text_of, whole_number

_EMPTY: tuple[Any, ...] = (None, "", [])
"""Values that say nothing."""

PUBLICATIONS, USERS, LOCATIONS, AUTHORITIES = "publications", "users", "locations", "authorities"


class Source(StrEnum):
    """Where the fields of a resource in the target are known from."""

    DESCRIPTION = "description"
    """The target's own description."""
    RECORDS = "records"
    """The records of both libraries; whether the target takes all of their fields is not proved."""
    ASSUMED = "assumed"
    """What we assume (service.md#other-resources)."""


class LeftOut(StrEnum):
    """Why a field of the source is not sent."""

    NOT_DESCRIBED = "not_described"
    """The target's description does not have it in what it takes."""
    READ_ONLY = "read_only"
    """The target's description says that the service fills it."""
    UNKNOWN_REFERENCE = "unknown_reference"
    """It may refer to records, and it is unknown of which resource."""
    NO_RECORD = "no_record"
    """The target does not have the record to which it refers, and the plan does not create it."""
    NOT_A_CHOICE = "not_a_choice"
    """The target's description does not have the value among those that it takes."""
    OTHER_TYPE = "other_type"
    """The target's description takes values of another type."""
    NOT_SHOWN = "not_shown"
    """Neither a description nor the records of the target show that it has the field."""
    LINK = "link"
    """It refers to another record, of an unknown resource or of one that the plan does not move."""
    NOT_SENDABLE = "not_sendable"
    """It is nested too deeply, or a number of more than 64 bits."""
    SIGNED = "signed"
    """It has signed addresses, which change in every response."""


class MergeRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one record is merged into another; by default as we assume (service.md#other-resources)."""

    method: str = "PATCH"
    path: str = "{}/merge"
    """Below the list of the resource; `{}` is the id of the record that goes."""
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


class Within(msgspec.Struct, frozen=True):
    """Where the ids of a reference are in the objects of a list, as in `[{"publication_id": 7, "position": 1}]`."""

    path: tuple[str, ...]
    """The members from an object to its id: `("user", "id")`."""
    members: tuple[str, ...]
    """The members of an object that are sent and compared."""

    def id_of(self, entry: Any) -> int | None:
        """The id in an entry."""
        for member in self.path:
            entry = entry.get(member) if isinstance(entry, dict) else None
        return whole_number(entry)

    def with_id(self, entry: Mapping[str, Any], number: Any) -> dict[str, Any]:
        """An entry as it is sent and compared, with another id."""
        for member in reversed(self.path[1:]):
            number = {member: number}
        members = {name: plain(entry[name]) for name in self.members if entry.get(name) is not None}
        return members | {self.path[0]: number}

    def entries(self, value: Any) -> list[dict[str, Any]]:
        """The objects of a list, as they are sent and compared."""
        entries = value if isinstance(value, list) else ()
        return [self.with_id(entry, self.id_of(entry)) for entry in entries if isinstance(entry, dict)]


class ResourceType(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the records of one resource are moved. Publications, which have most of everything, are a `PublicationType`."""

    resource: str
    fields: tuple[str, ...]
    """The fields that are sent and compared, in the order in which they are sent."""
    keys: tuple[tuple[str, ...], ...]
    """The fields that name a record for people: the first group of which it has all. In the last group only the first field is required."""
    references: dict[str, str] = {}
    """Field → the resource that its ids refer to. A plan and a drill of this resource need a snapshot that has that one (plan/scope.py)."""
    lists: tuple[str, ...] = ()
    """Fields with several values in no order."""
    guarded: tuple[str, ...] = ()
    """Fields that are never added to a record that exists: a person is asked."""
    created: bool = True
    """Whether the service lets a program create records."""
    keys_read: dict[str, tuple[str, ...]] = {}
    """Field → the keys of a record that have it, the first one that is there; by default the field itself."""
    objects: tuple[str, ...] = ()
    """References that are sent as `{"id"}`."""
    texts: tuple[str, ...] = ()
    """References whose ids are sent as texts."""
    within: dict[str, Within] = {}
    """References whose ids are in the objects of a list."""
    choices: dict[str, tuple[str, ...]] = {}
    """Field → the values that the target takes, as text."""
    required: tuple[str, ...] = ()
    """The fields without which the target takes no new record."""
    left_out: dict[str, str] = {}
    """Field of the source that is not sent → why: a `LeftOut`."""
    source: str = Source.ASSUMED
    """Where all this is known from."""
    unproved: tuple[str, ...] = ()
    """Fields that are sent although neither a description nor the target's records have them."""
    wrapped_in: str = ""
    """The key around a record in a payload, if there is one."""
    method: str = "PATCH"
    """The method of a change."""
    merge: MergeRequest | None = None
    """How its records are merged; none for those that are not, and where the target's description is not clear."""
    shown: tuple[str, ...] = ()
    """The fields that records of the target had when they were read."""

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
    def undocumented(self) -> frozenset[str]:
        """Fields that the service may ignore."""
        return frozenset(self.unproved)

    @property
    def filled(self) -> frozenset[str]:
        """Fields that the service may fill itself in a new record, so that nothing is expected where none was sent."""
        return frozenset()

    @property
    def needs_references(self) -> bool:
        """Whether a record is not created where the target lacks one to which it refers."""
        return True

    @property
    def of_target(self) -> ResourceType:
        """The same for records of the target, which are compared whatever their values are."""
        return msgspec.structs.replace(self, choices={})

    def form(self, record: Mapping[str, Any]) -> Form:
        """What is compared and sent of a record; references are those of its own library."""
        values, unsent = self.values(record), self.unsent(record)
        for name, value in self.refused(values).items():
            unsent[name] = value
            del values[name]
        return Form(values, without_signed_addresses(unsent), self.empty_values(record))

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
        return content_digest(compared, sorted(compared)) if compared else None

    def planned(self, _name: str, value: Any) -> Any:
        """A value as a plan's payload has it; ids get their form in `body`."""
        return value

    def reference_form(self, name: str, entries: list[Any]) -> dict[str, Any]:
        """How the ids of a reference are sent, as far as a plan's row says it. `entries`: the value."""
        return {"within": self.within[name], "entries": entries} if name in self.within else {}

    def unsent_references(self, name: str, missing: Mapping[int, Any], *, many: bool) -> dict[str, Any]:
        """Path → references that lead nowhere. `missing`: position → what the record has there."""
        return {f"{name}[{position}]" if many else name: entry for position, entry in missing.items()}

    def values(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a record that are sent: an empty field is absent, a reference is its id."""
        found = {}
        for name in self.fields:
            value = self._read(record, name)
            if name in self.within:
                value = self.within[name].entries(value)
            elif name in self.lists:
                value = _entries(value, ids=name in self.references)
            elif name in self.references:
                value = id_of(value)
            elif self.source != Source.ASSUMED:
                value = plain(value)
            if value not in _EMPTY:
                found[name] = value
        return found

    def empty_values(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a record that have an empty text or list, which a new record gets as it is. Those of users are documented."""
        if self.resource == USERS:
            return {}
        found = ((name, self._read(record, name)) for name in self.fields)
        return {
            name: value
            for name, value in found
            if is_sent_empty(value)
            and (value == [] or (name not in self.references and "" in self.choices.get(name, ("",))))
        }

    def whole_values(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a record as they stand, empty texts and lists too, which a PUT sends again and undo restores."""
        return self.values(record) | self.empty_values(record)

    def keys_of(self, name: str) -> tuple[str, ...]:
        """The keys of a record that may have a field, the best first."""
        return self.keys_read.get(name, (name,))

    def has(self, record: Mapping[str, Any], name: str) -> bool:
        """Whether a record has a field, under any of the keys that it may have."""
        return any(key in record for key in self.keys_of(name))

    def _read(self, record: Mapping[str, Any], name: str) -> Any:
        return next((record[key] for key in self.keys_of(name) if key in record), None)

    def id_in(self, name: str, entry: Any) -> int | None:
        """The id in a reference, or in an entry of a list of them."""
        return self.within[name].id_of(entry) if name in self.within else id_of(entry)

    def with_id(self, name: str, entry: Any, number: Any) -> Any:
        """A reference, or an entry of a list of them, with another id."""
        if name in self.within:
            return self.within[name].with_id(entry, number)
        return {"id": number} if isinstance(entry, dict) and isinstance(number, int) else number

    def sent(self, name: str, value: Any) -> Any:
        """A value in the form in which it is sent."""
        if isinstance(value, list):
            return [self.sent(name, one) for one in value] if name in self.references else value
        if value is None or name not in self.references:
            return value
        number: Any = self.id_in(name, value)
        if name in self.texts:
            number = str(number)
        if name in self.within:
            return self.with_id(name, value, number)
        return {"id": number} if name in self.objects else number

    def unsent(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a record that are not sent."""
        read = {key for name in self.fields for key in self.keys_of(name)}
        known = read | {"id"} | IGNORED
        if self.source != Source.ASSUMED:
            known |= {name for name in record if is_managed(name)}
        return {name: value for name, value in record.items() if name not in known and value not in (None, "", [], {})}

    def refused(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values that the target's description does not take: field → value."""
        return {
            name: values[name]
            for name, choices in self.choices.items()
            if name in values and not {text_of(one) for one in _several(values[name])} <= {*choices}
        }

    def redirected(self, values: dict[str, Any], merged: Mapping[tuple[str, int], int]) -> dict[str, Any]:
        """The values with references to the records that remain. `merged`: resource and id of a merged record → the one that remains."""
        for name, resource in self.references.items() if merged else ():
            value = values.get(name)
            if value is None:
                continue
            entries = [
                self.with_id(name, entry, merged.get((resource, number), number))
                for entry in _several(value)
                for number in [self.id_in(name, entry) or 0]
            ]
            different = [*{compact_json(entry): entry for entry in entries}.values()]
            values[name] = different if isinstance(value, list) else entries[0]
        return values

    def compared(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Field → JSON in canonical form, so that equal values are equal text; an empty field is absent."""
        return {name: self._text(name, value) for name, value in values.items() if value not in _EMPTY}

    def compared_record(self, record: Mapping[str, Any]) -> dict[str, str]:
        """The same of a record or a payload, in any of the forms in which its fields are read."""
        return self.compared(self.values(record))

    def _text(self, name: str, value: Any) -> str:
        if name == "email":
            value = _folded(value)
        elif name in self.lists and type(value) is list:
            return f"[{','.join(sorted({compact_json(entry) for entry in value}))}]"
        return compact_json(in_order(value))

    def key(self, values: Mapping[str, Any], *, folded: bool = True) -> str | None:
        """The key of a record, none where it has no such fields. `folded`: without regard to case."""
        normalised = _folded if folded else _plain
        *whole, last = self.keys
        for names in whole:
            if all(values.get(name) not in _EMPTY for name in names):
                return compact_json([names[0], *(normalised(values[name]) for name in names)])
        if values.get(last[0]) in _EMPTY:
            return None
        return compact_json(
            [last[0], *(normalised(None if values.get(name) in _EMPTY else values[name]) for name in last)]
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


NAMES = (Stage("exact", "name"), Stage("folded", "name"))
"""The names of records as they are written, and without regard to case."""


def content_digest(compared: Mapping[str, str], names: Iterable[str]) -> str:
    """One digest of some compared fields."""
    content = "\n".join(f"{name}:{compared[name]}" for name in names if name in compared)
    return hashlib.sha256(content.encode()).hexdigest()


def without_signed_addresses(unsent: dict[str, Any]) -> dict[str, Any]:
    """Values that are not sent, as they may be stored (I10)."""
    text = residue_json(unsent)
    return {} if text is None else msgspec.json.decode(text)


class AdditionalFields(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of publications that the service does not document: those that a plan moves, and why it moves no others."""

    moved: dict[str, FieldRule] = {}
    """Field → the values of it that are sent."""
    left_out: dict[str, str] = {}
    """Field of the source that is not sent → why: a `LeftOut`."""
    unproved: tuple[str, ...] = ()
    """Fields that are sent because the target's records have them, although no description does."""


RESOURCE_TYPES = {
    resource_type.resource: resource_type
    for resource_type in (
        ResourceType(AUTHORITIES, ("name", "kind", "variants"), (("name", "kind"),), lists=("variants",)),
        ResourceType(
            USERS,
            ("email", "name", "roles"),
            (("email",),),
            lists=("roles",),
            guarded=("roles",),
        ),
        ResourceType(
            "collections",
            ("name", "description", "publication_ids"),
            (("name",),),
            references={"publication_ids": PUBLICATIONS},
            lists=("publication_ids",),
        ),
        ResourceType(LOCATIONS, ("name", "note"), (("name",),), created=False),
        ResourceType(
            "hard_copies",
            ("publication_id", "location_id", "barcode", "call_number", "status", "acquired_on", "note"),
            (("barcode",), ("publication_id", "location_id", "call_number")),
            references={"publication_id": PUBLICATIONS, "location_id": LOCATIONS},
        ),
        ResourceType(
            "tasks",
            ("title", "description", "publication_id", "assignee_id", "due_on"),
            (("title", "publication_id", "assignee_id", "due_on"),),
            references={"publication_id": PUBLICATIONS, "assignee_id": USERS},
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
    wanted = {*names} - {PUBLICATIONS, ""}
    if unknown := sorted(wanted - {*RESOURCES}):
        raise ValueError(f"{', '.join(unknown)}: not a resource; those are {', '.join(RESOURCES)}")
    if "hard_copies" in wanted:
        wanted.add(LOCATIONS)
    return tuple(name for name in (*BEFORE, *AFTER) if name in wanted)


def referenced_resources(resources: Collection[str]) -> tuple[str, ...]:
    """The resources that are read only because these refer to them."""
    needed = {name for resource in resources for name in RESOURCE_TYPES[resource].references.values()}
    return tuple(name for name in (*BEFORE, *AFTER) if name in needed and name not in resources)


def adopts(counts: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether the service may make authorities by itself before a plan creates them.

    `counts`: resource → action → records, in the order of writing.
    """
    order = [*counts]
    if AUTHORITIES not in counts or order.index(AUTHORITIES) < order.index(PUBLICATIONS):
        return False
    publications = counts[PUBLICATIONS]
    return bool(counts[AUTHORITIES].get(Action.CREATE)) and any(publications.get(one) for one in WRITTEN_ACTIONS)


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def id_of(value: Any) -> int | None:
    """The id of a reference, which may be the whole record."""
    return whole_number(value.get("id")) if isinstance(value, dict) else whole_number(value)


def _entries(value: Any, *, ids: bool) -> list[Any]:
    """The different entries of a list."""
    entries = value if isinstance(value, list) else []
    plain = [id_of(entry) if ids else (entry.get("name") if isinstance(entry, dict) else entry) for entry in entries]
    return [*dict.fromkeys(entry for entry in plain if isinstance(entry, int if ids else str))]


def _plain(value: Any) -> Any:
    """A text with single blanks and in one Unicode form."""
    return " ".join(unicodedata.normalize("NFC", value).split()) if isinstance(value, str) else value


def _folded(value: Any) -> Any:
    """The same in lower case."""
    return _plain(value.casefold()) if isinstance(value, str) else value
