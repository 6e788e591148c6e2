"""How one field of a resource is moved: assumed, learned, proposed in the mapping file, answered there and followed by a plan.

The mapping file, `plan.json` and everything that reads, compares and sends a field have this one structure. Its name is a path where it is
a member of an object: `holding/location_id`.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from pipelines.records.additional_fields import is_empty, sendable
from pipelines.records.paths import nested, value_at
from pipelines.records.values import RecordId, as_id, record_id, text_of

OPEN = "?"
"""Stands for the answer to a question."""

NOTHING = "nothing"
"""The answer that a field refers to no records."""

LEFT_OUT = "left out"
"""The answer that references of a kind are not sent."""

SentAs = Literal["number", "text", "object", "object with a text"]


class FieldMapping(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename={"keys": "from"}
):
    """One field that is sent, as the mapping file has it. One with an open question is sent by no plan."""

    keys: tuple[str, ...] | None = None
    """The keys under which a record may have it, the first one that is there; by default its name. With none it is only filled."""
    leads_to: str = ""
    """The resource of the records whose ids it has."""
    many: bool = False
    """Whether it has several entries."""
    sent_as: SentAs = "number"
    """The form of the ids."""
    kind: str = ""
    """The field beside it with the kind of the record, as in `{"subject_type": "Location", "subject_id": 7}`; it is sent, too."""
    kinds: dict[str, str] = {}
    """Kind → the resource of the records whose ids it has, where they are of several."""
    entries: dict[str, FieldMapping] = {}
    """What is sent of the objects of a list, such as `{"publication_id": 7, "position": 1}`."""
    post: str = ""
    """How ids are added to a list below the record, such as `publications publication_id`: path, and key of the body."""
    any_order: bool = False
    """Whether it has several texts in no order."""
    values: dict[str, Any] = {}
    """Value of the source, as text → the one that is sent for it. For a reference it is empty: the value stands for no record."""
    fill: Any = None
    """What a new record gets that has nothing there."""

    @property
    def is_open(self) -> bool:
        """Whether a question about it has no answer yet."""
        return self.asks_where or OPEN in (self.fill, self.post, *self.values.values()) or self._any_entry("is_open")

    @property
    def asks_where(self) -> bool:
        """Whether it is not answered yet to which records it refers."""
        return OPEN in (self.leads_to, *self.kinds.values()) or self._any_entry("asks_where")

    @property
    def refers(self) -> bool:
        """Whether it has ids of other records."""
        return bool(self.kinds) or self.leads_to not in ("", NOTHING) or self._any_entry("refers")

    def _any_entry(self, what: str) -> bool:
        return any(getattr(entry, what) for entry in self.entries.values())

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources of the records to which it refers."""
        answers = [self.leads_to, *self.kinds.values()]
        answers += [resource for entry in self.entries.values() for resource in entry.resources]
        return tuple(answer for answer in answers if answer not in ("", OPEN, NOTHING, LEFT_OUT))

    def parts(self, name: str) -> Iterator[tuple[str, FieldMapping]]:
        """Yield its path and itself, and the same of everything in its entries. `name`: its own."""
        yield name, self
        for member, entry in self.entries.items():
            keys = tuple(f"{key}/{inner}" for key in self.keys_of(name) for inner in entry.keys_of(member))
            kind = entry.kind and f"{next(iter(self.keys_of(name)), name)}/{entry.kind}"
            yield from msgspec.structs.replace(entry, keys=keys, kind=kind).parts(f"{name}/{member}")

    @property
    def as_text(self) -> bool:
        """Whether its ids are sent as texts."""
        return self.sent_as.endswith("text")

    def asking(self, values: Mapping[str, Iterable[str]], path: str) -> FieldMapping:
        """The same with a question for each value at its path, and at those of its entries."""
        entries = {name: entry.asking(values, f"{path}/{name}") for name, entry in self.entries.items()}
        asked = dict.fromkeys(values.get(path, ()), OPEN)
        return msgspec.structs.replace(self, values=self.values | asked, entries=entries)

    def with_questions_of(self, proposed: FieldMapping) -> FieldMapping:
        """The same with a question for each value and each kind that it does not know and `proposed` asks about, in its entries, too.

        A field that refers to nothing has every answer.
        """
        if self.leads_to == NOTHING:
            return self
        values = {value: OPEN for value, answer in proposed.values.items() if answer == OPEN} | self.values
        kinds = dict.fromkeys(proposed.kinds, OPEN) | self.kinds if self.kinds else {}
        entries = {
            name: entry.with_questions_of(proposed.entries.get(name, PLAIN)) for name, entry in self.entries.items()
        }
        return msgspec.structs.replace(self, values=values, kinds=kinds, entries=entries)

    def with_members_of(self, proposed: FieldMapping, path: str, left_out: Container[str]) -> FieldMapping:
        """The same with what the objects of its list have in `proposed` only. `path`: its own; `left_out`: the paths that are not sent."""
        known = {key for name, entry in self.entries.items() for key in (name, *entry.keys_sent(name))}
        new = {
            name: entry
            for name, entry in proposed.entries.items()
            if self.entries and known.isdisjoint((name, *entry.keys_sent(name))) and f"{path}/{name}" not in left_out
        }
        within = {
            name: entry.with_members_of(proposed.entries.get(name, PLAIN), f"{path}/{name}", left_out)
            for name, entry in self.entries.items()
        }
        return msgspec.structs.replace(self, entries=within | new)

    def of_target(self, name: str) -> FieldMapping:
        """The same of the target, where it has its own name and may have any value. `name`: its own.

        The words for kinds are still those of the source, which stand for what is sent.
        """
        keys = self.keys if self.keys is None or name in self.keys else (name,)
        entries = {member: entry.of_target(member) for member, entry in self.entries.items()}
        values = self.values if self.kind else {}
        return msgspec.structs.replace(self, keys=keys, entries=entries, values=values, fill=None)

    def keys_of(self, name: str) -> tuple[str, ...]:
        """The keys of a record that may have it, the best first. `name`: its own."""
        return (name,) if self.keys is None else self.keys

    def keys_sent(self, name: str) -> set[str]:
        """The keys of a record whose values are sent with it."""
        return {*self.keys_of(name), self.kind} if self.kind else {*self.keys_of(name)}

    def read(self, record: Mapping[str, Any], name: str) -> Any:
        """Its value in a record; None where that has none. An id with a kind beside it is one object with that."""
        present = (value for key in self.keys_of(name) if (value := value_at(record, key, ...)) is not ...)
        value = next(present, None)
        if self.kind and record_id(value) is not None:
            return {self.kind: value_at(record, self.kind), "id": value}
        return value

    def hidden(self, record: Mapping[str, Any], name: str) -> Iterator[str]:
        """Yield the keys of a record under which it has something else than what is read."""
        values = {key: value for key in self.keys_of(name) if (value := value_at(record, key, ...)) is not ...}
        read = next((_ids_or_values(value) for value in values.values()), None)
        yield from (key for key, value in values.items() if not is_empty(value) and _ids_or_values(value) != read)

    def read_apart(self, record: Mapping[str, Any], name: str) -> Any:
        """Its value in a record whose objects are taken apart, so that paths are keys; None where that has none."""
        return next((record[key] for key in self.keys_of(name) if key in record), None)

    def kind_of(self, reference: Any) -> str:
        """The kind beside the id of a reference; empty if it has none."""
        return (text_of(reference.get(self.kind)) if isinstance(reference, dict) else None) or ""

    def resource_of(self, reference: Any) -> str:
        """The resource of the record to which a reference leads; empty for a kind that nobody named."""
        return self.kinds.get(self.kind_of(reference), "") if self.kinds else self.leads_to

    def form_of(self, value: Any) -> Any:
        """A value as it is compared: a reference is an id, or the object of kind and id. Raises `ValueError` for what cannot be sent."""
        if self.entries:
            entries = [entry for entry in several(value) if entry is not None]
            if not all(isinstance(entry, dict) for entry in entries):
                raise ValueError("no objects")
            return [form for entry in entries if (form := self._entry_form(entry))]
        if self.refers:
            if self.many:
                records = [self._reference(entry) for entry in several(value) if not self._is_none(entry)]
                return [*dict.fromkeys(records)] if self.post else records
            return None if self._is_none(value) else self._reference(value)
        value = _texts(value) if self.any_order else sendable(value)
        if self.asks_about(value):
            raise ValueError("no answer")
        return self._translated(value) if self.values else value

    def _entry_form(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        read = {name: member.read(entry, name) for name, member in self.entries.items()}
        forms = {name: self.entries[name].form_of(value) for name, value in read.items() if not is_empty(value)}
        return {name: form for name, form in forms.items() if not is_empty(form)}

    def _is_none(self, value: Any) -> bool:
        """Whether a value stands for no record, such as `false`, or -1 where a person said so."""
        number = value.get("id") if isinstance(value, dict) else value
        return value is None or value is False or self.values.get(text_of(number) or "") == ""

    def _reference(self, value: Any) -> Any:
        if (number := id_of(value)) is None:
            raise ValueError("no id")
        kind = value.get(self.kind) if self.kind and isinstance(value, dict) else None
        kind = next((word for word, sent in self.values.items() if sent == kind), kind)  # of a record of the target
        return {self.kind: kind, "id": number} if isinstance(kind, str) else number

    def with_ids(self, form: Any, new_id: Callable[[str, Any], Any]) -> Any:
        """The value that it has as it is compared, with other ids. `new_id`: resource and id → the id that takes its place.

        Where that is None, the objects of a list go without the reference, and a list within them without the entry.
        """
        if not self.refers:
            return form
        if isinstance(form, list):
            entries = [self.with_ids(entry, new_id) for entry in form]
            return [entry for entry in entries if entry not in (None, {})] or None
        if self.entries:
            members = {name: self.entries[name].with_ids(value, new_id) for name, value in form.items()}
            return {name: member for name, member in members.items() if member is not None}
        number = new_id(self.resource_of(form), form["id"] if isinstance(form, dict) and "id" in form else form)
        if number is None or not isinstance(form, dict) or (not self.kind and isinstance(number, dict)):
            return number
        return ({self.kind: form[self.kind]} if self.kind in form else {}) | {"id": number}

    def led_to(self, form: Any) -> list[tuple[str, Any]]:
        """Resource and id of each record to which a value leads, in their order."""
        records = list[tuple[str, Any]]()
        self.with_ids(form, lambda *record: records.append(record))
        return records

    def payload(self, name: str, form: Any) -> dict[str, Any]:
        """The fields of a request's body that set it, by their paths."""
        if isinstance(form, list):
            return {name: [self._sent(entry) for entry in form]}
        if not self.kind:
            return {name: self._sent(form)}
        kind = self.kind_of(form)
        return {self.kind: self.values.get(kind, kind) or None, name: self._sent(form)}

    def payload_again(self, name: str, form: Any, record: Mapping[str, Any]) -> dict[str, Any]:
        """The same of a field that is not changed: as this record of the target has it, with what the mapping does not know of it."""
        value = self.read(record, name)
        if is_empty(value) or (self.refers and not self.entries):
            return self.payload(name, form)
        if not self.entries:
            return {name: value}
        known, entries = self._known_keys, [entry for entry in several(value) if isinstance(entry, dict)]
        return {name: [_with_rest(self._sent(self._entry_form(entry)), entry, known) for entry in entries]}

    def with_unknown(
        self, name: str, sent: Sequence[Mapping[str, Any]], record: Mapping[str, Any], takes: Callable[[str], bool]
    ) -> list[dict[str, Any]]:
        """The objects of a list as they are sent, with what the mapping does not know of the same ones of this record of the target.

        `takes`: whether the target takes a member.
        """
        in_target = [entry for entry in several(self.read(record, name)) if isinstance(entry, dict)]
        same, known = self._same(sent, in_target), self._known_keys
        taken = [{key: value for key, value in entry.items() if takes(key)} for entry in in_target]
        return [
            _with_rest(entry, taken[same[place]] if place in same else {}, known) for place, entry in enumerate(sent)
        ]

    def _same(self, sent: Sequence[Mapping[str, Any]], in_target: Sequence[Mapping[str, Any]]) -> dict[int, int]:
        """Place of an object that is sent → that of the same one in the target, as far as each side has as many of these."""
        same = dict[int, int]()
        for identity in (self._name_and_led, self._led, _name_of, self._content):
            sides = [
                _places(identity, entries, taken) for entries, taken in ((sent, {*same}), (in_target, {*same.values()}))
            ]
            for text in sides[0].keys() & sides[1].keys():
                places, places_in_target = sides[0][text], sides[1][text]
                # Several that lead to one record may be anybody
                if len(places) == len(places_in_target) and (identity != self._led or len(places) == 1):
                    same |= dict(zip(places, places_in_target, strict=True))
        return same

    def _led(self, entry: Mapping[str, Any]) -> str:
        """The ids of the records to which an object leads; empty where it leads to none."""
        values = [part.read(entry, member) for member, part in self.entries.items() if part.refers]
        ids = [[id_of(value) for value in several(value)] for value in values]
        return repr(ids) if any(number is not None for numbers in ids for number in numbers) else ""

    def _name_and_led(self, entry: Mapping[str, Any]) -> str:
        led = self._led(entry)
        return f"{_name_of(entry)} {led}" if led else ""

    def _content(self, entry: Mapping[str, Any]) -> str:
        known = {key.partition("/")[0] for key in self._known_keys}
        return repr(sorted((key, value) for key, value in entry.items() if key in known))

    @property
    def _known_keys(self) -> set[str]:
        return {key for member, part in self.entries.items() for key in part.keys_sent(member)}

    def _sent(self, form: Any) -> Any:
        if form is None or not (self.refers or self.entries):
            return form
        if self.entries:
            payloads = [self.entries[name].payload(name, value) for name, value in form.items()]
            return nested({key: value for payload in payloads for key, value in payload.items()})
        number = id_of(form)
        number = str(number) if self.as_text else number
        return {"id": number} if self.sent_as.startswith("object") else number

    def asks_about(self, value: Any) -> bool:
        """Whether nobody said yet which value is sent for this one, or for one of its entries."""
        return any(self.values.get(text_of(entry) or "") == OPEN for entry in several(value) if self.values)

    def _translated(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._translated(entry) for entry in value]
        answer = self.values.get(text := text_of(value) or "", value)
        return answer if isinstance(value, str) else _as_sent(text, answer)

    def answers(self) -> Iterator[Any]:
        """Yield what is sent for its values, as far as people said so."""
        yield from (_as_sent(text, answer) for text, answer in self.values.items() if answer not in (OPEN, None))


def _as_sent(text: str, answer: Any) -> Any:
    """The answer to a question about a number, as a number: the question mark had quotes."""
    return as_id(answer) if isinstance(answer, str) and isinstance(as_id(text), int) else answer


PLAIN = FieldMapping()
"""A field that is sent as it stands."""


def _name_of(entry: Mapping[str, Any]) -> str:
    return f"{plain_text(entry['name'])!r}" if "name" in entry else ""


def _places(
    identity: Callable[[Mapping[str, Any]], str], entries: Sequence[Mapping[str, Any]], taken: set[int]
) -> dict[str, list[int]]:
    """Identity → the places of the entries that have it, but for those that are taken."""
    places = defaultdict[str, list[int]](list)
    for place, entry in enumerate(entries):
        if place not in taken and (text := identity(entry)):
            places[text].append(place)
    return places


def _with_rest(
    sent: Mapping[str, Any], present: Mapping[str, Any], known: Collection[str], above: str = ""
) -> dict[str, Any]:
    """An object as it is sent, with the members of another one, at any depth, whose paths are not known."""
    rest = dict[str, Any]()
    for key, value in present.items():
        path, inner = f"{above}{key}", sent.get(key, {})
        if isinstance(value, dict) and isinstance(inner, dict) and any(name.startswith(f"{path}/") for name in known):
            rest |= {key: whole} if (whole := _with_rest(inner, value, known, f"{path}/")) else {}
        elif key not in sent and path not in known:
            rest[key] = value
    return {**sent, **rest}


def plain(*names: str) -> dict[str, FieldMapping]:
    """Fields that are sent as they stand."""
    return dict.fromkeys(names, PLAIN)


def plain_text(value: Any) -> Any:
    """A text with single blanks and in one Unicode form: a service may keep it so."""
    return " ".join(unicodedata.normalize("NFC", value).split()) if isinstance(value, str) else value


def several(value: Any) -> list[Any]:
    """The entries of a list; of any other value, itself."""
    return value if isinstance(value, list) else [value]


def id_of(value: Any) -> RecordId | None:
    """The id of a reference, which may be the whole record."""
    return record_id(value.get("id") if isinstance(value, dict) else value)


def _ids_or_values(value: Any) -> list[Any]:
    """What a field has, whether its references are ids or objects."""
    return [entry if (number := id_of(entry)) is None else number for entry in several(value)]


def _texts(value: Any) -> list[str]:
    """The different entries of a list of texts, or of objects with a name."""
    entries = value if isinstance(value, list) else []
    names = (entry.get("name") if isinstance(entry, dict) else entry for entry in entries)
    return [*dict.fromkeys(name for name in names if isinstance(name, str))]
