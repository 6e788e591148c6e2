"""How one field of a resource is moved: assumed, learned, proposed in the mapping file, answered there and followed by a plan.

The mapping file, `plan.json` and everything that reads, compares and sends a field have this one structure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from pipelines.records.additional_fields import sendable
from pipelines.records.values import RecordId, record_id, text_of

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
    """Whether it refers to several records."""
    sent_as: SentAs = "number"
    """The form of the ids."""
    within: str = ""
    """The member of an object that has it, as in `{"data": [{"type": "locations", "id": "7"}]}`."""
    inside: tuple[str, ...] = ()
    """The members from an object, or from those of a list, to its id: `("user", "id")`."""
    kind: str = ""
    """Where the kind of the record stands beside its id: the member of that object, as in `{"type": "locations", "id": "7"}`, or another
    field of the record, where the id is in no object: `{"subject_type": "Location", "subject_id": 7}`."""
    kinds: dict[str, str] = {}
    """Kind → the resource of the records whose ids it has, where they are of several."""
    members: tuple[str, ...] = ()
    """The other members of that object that are sent and compared."""
    post: str = ""
    """How ids are added to a list below the record, such as `publications publication_id`: path, and key of the body."""
    any_order: bool = False
    """Whether it has several texts in no order."""
    values: dict[str, Any] = {}
    """Value of the source, as text → the one that is sent for it."""
    fill: Any = None
    """What a new record gets that has nothing there."""

    @property
    def is_open(self) -> bool:
        """Whether a question about it has no answer yet."""
        return OPEN in (self.leads_to, self.fill, self.post, *self.values.values(), *self.kinds.values())

    @property
    def asks_where(self) -> bool:
        """Whether it is not answered yet to which records it refers."""
        return OPEN in (self.leads_to, *self.kinds.values())

    @property
    def refers(self) -> bool:
        """Whether it has ids of other records."""
        return bool(self.kinds) or self.leads_to not in ("", NOTHING)

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources of the records to which it refers."""
        answers = self.kinds.values() if self.kinds else (self.leads_to,)
        return tuple(answer for answer in answers if answer not in ("", NOTHING, LEFT_OUT))

    @property
    def path(self) -> tuple[str, ...]:
        """`inside`; of an id whose kind is another field of the record, where it is once the two are one object."""
        return self.inside or (("id",) if self.kind else ())

    @property
    def as_text(self) -> bool:
        """Whether its ids are sent as texts."""
        return self.sent_as.endswith("text")

    def keys_of(self, name: str) -> tuple[str, ...]:
        """The keys of a record that may have it, the best first. `name`: its own."""
        return (name,) if self.keys is None else self.keys

    def read(self, record: Mapping[str, Any], name: str) -> Any:
        """Its value in a record; None where that has none. An id whose kind is another field of the record is one object with it."""
        value = next((record[key] for key in self.keys_of(name) if key in record), None)
        if self.within and isinstance(value, dict) and self.within in value:
            return value[self.within]
        if self.is_pair and record_id(value) is not None:
            return {self.kind: record.get(self.kind), "id": value}
        return value

    def payload(self, name: str, value: Any) -> dict[str, Any]:
        """The members of a request's body that set it."""
        value = self.sent(value)
        if self.is_pair:
            value = value or {}
            return {self.kind: value.get(self.kind), name: value.get("id")}
        return {name: {self.within: value} if self.within else value}

    @property
    def is_pair(self) -> bool:
        """Whether the kind of its record is another field."""
        return bool(self.kind) and not self.inside

    def keys_sent(self, name: str) -> set[str]:
        """The keys of a record whose values are sent with it."""
        return {*self.keys_of(name), self.kind} if self.is_pair else {*self.keys_of(name)}

    def id_of(self, entry: Any) -> RecordId | None:
        """The id in a reference, or in an entry of a list of them."""
        return record_id(self._holder(entry).get(self.path[-1])) if self.path else id_of(entry)

    def kind_of(self, entry: Any) -> str:
        """The kind beside the id of a reference; empty if it has none."""
        return text_of(self._holder(entry).get(self.kind)) or ""

    def resource_of(self, entry: Any) -> str:
        """The resource of the record to which a reference leads; empty for a kind that nobody named."""
        return self.kinds.get(self.kind_of(entry), "") if self.kinds else self.leads_to

    def _holder(self, entry: Any) -> Mapping[str, Any]:
        """The object that has the id."""
        for member in self.path[:-1]:
            entry = entry.get(member) if isinstance(entry, dict) else None
        return entry if isinstance(entry, dict) else {}

    def with_id(self, entry: Any, number: Any) -> Any:
        """A reference, or an entry of a list of them, as it is sent and compared, with another id."""
        if not self.path:
            return {"id": number} if isinstance(entry, dict) and not isinstance(number, dict) else number
        kind = self._holder(entry).get(self.kind) if self.kind else None
        *above, last = self.path
        reference = ({self.kind: kind} if isinstance(kind, str) else {}) | {last: number}
        for member in reversed(above):
            reference = {member: reference}
        return {name: sendable(entry[name]) for name in self.members if entry.get(name) is not None} | reference

    def references_in(self, value: Any) -> Any:
        """The reference, or the list of them, as it is compared. Raises `ValueError` for what is none."""
        if self.many and self.inside:
            return [self.with_id(entry, self.id_of(entry)) for entry in several(value) if isinstance(entry, dict)]
        if self.many:
            return [*dict.fromkeys(self._known_id(entry) for entry in several(value) if entry is not None)]
        number = self._known_id(value)
        return self.with_id(value, number) if self.path else number

    def _known_id(self, entry: Any) -> RecordId:
        if (number := self.id_of(entry)) is None:
            raise ValueError("no id")
        return number

    def sent(self, value: Any) -> Any:
        """A value in the form in which it is sent."""
        if value is None or not self.refers:
            return value
        if isinstance(value, list):
            return [self.sent(entry) for entry in value]
        number: Any = self.id_of(value)
        if self.as_text:
            number = str(number)
        if self.path:
            return self.with_id(value, number)
        return {"id": number} if self.sent_as.startswith("object") else number

    def translated(self, value: Any) -> Any:
        """The target's values for those of the source."""
        if isinstance(value, list):
            return [self.translated(entry) for entry in value]
        return self.values.get(text_of(value) or "", value)


PLAIN = FieldMapping()
"""A field that is sent as it stands."""


def plain(*names: str) -> dict[str, FieldMapping]:
    """Fields that are sent as they stand."""
    return dict.fromkeys(names, PLAIN)


def several(value: Any) -> list[Any]:
    """The entries of a list; of any other value, itself."""
    return value if isinstance(value, list) else [value]


def id_of(value: Any) -> RecordId | None:
    """The id of a reference, which may be the whole record."""
    return record_id(value.get("id") if isinstance(value, dict) else value)
