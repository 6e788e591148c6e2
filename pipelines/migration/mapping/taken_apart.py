"""Takes objects with references apart: each of their members is a field of its own, such as `holding/location_id`.

An object that is the record to which it refers stays whole, and so does one that refers to none.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from pipelines.migration.mapping.kinds_beside import objects_in
from pipelines.records.additional_fields import is_managed
from pipelines.records.paths import ATTRIBUTES, DATA, RELATIONSHIPS, as_part, members_apart
from pipelines.records.shapes.field_names import (
    NAMES_OF_RECORDS,
    in_words,
    is_named_as_id,
    may_name_records,
    names_own_kind,
    reference_stem,
    resource_named,
    singular,
    stem_of,
    words_of,
)
from pipelines.records.shapes.observation import FieldShape, Kind, RecordShape
from pipelines.shapes.model import FieldSchema, PayloadSchema, ResourceSchema


class TakenApart:
    """The objects of a resource that are taken apart.

    `typed`: paths of ids with a kind beside them; `links`: path of a reference whose objects say something of the link → which members;
    `asked_within`: paths of values that are asked about, whatever their names, and of the objects that have them; `own`: the resource.
    """

    def __init__(
        self,
        shape: RecordShape,
        typed: Collection[str] = (),
        links: Mapping[str, Collection[str]] | None = None,
        asked_within: Collection[str] = (),
        own: str = "",
    ) -> None:
        self._typed, self._links, self._asked_within, self._own = typed, links or {}, asked_within, own
        self._links_in_words = {*map(in_words, self._links)}
        """The records to which these lead have filled their ids themselves; who refers to them sends one."""
        self._objects = dict[str, Container[str]]()
        """Path → the members that are fields; both in words, because the other library may spell them otherwise."""
        self.objects = set[str]()
        """The paths of all of them in the source."""
        self.lists = dict[str, FieldShape]()
        """Path of a list of such objects, the inner ones first → its shape."""
        self.unnameable = set[str]()
        """The fields with a slash in their names, as `members_apart` has them: no path leads to them."""
        self._look_into(shape.fields, "")
        self.whole = shape

    def _look_into(self, fields: Mapping[str, FieldShape], above: str) -> bool:
        """Note the objects of these fields; whether there are any."""
        are_apart = [self._is_apart(name, field, above, fields) for name, field in fields.items()]
        return any(are_apart)

    def _is_apart(self, name: str, field: FieldShape, above: str, beside: Container[str]) -> bool:
        path, objects = f"{above}{name}", objects_in(field)
        if "/" in name:
            self.unnameable.add(f"{above}{as_part(name)}")
        if objects is None or "/" in name:
            return False
        members = objects.members
        is_typed = f"{path}/id" in self._typed or (name == DATA and {"id", "type"} <= members.keys())
        if path in self._links:
            self._objects[in_words(path)] = {"id", *map(in_words, self._links[path])}
            self._look_into({name: members[name] for name in self._links[path] if name in members}, f"{path}/")
        elif is_tree(objects) or (is_embedded(path, objects) and not (is_typed or self._are_rows(path, field))):
            return False
        else:
            others = members.keys() - ({"id", "links", "meta"} if DATA in members else {"id"})
            refers = (
                is_typed
                or path in self._asked_within
                or any(
                    f"{path}/{member}" in self._typed or may_name_records(member, members[member], path)
                    for member in others
                )
            )
            is_content = name == ATTRIBUTES and RELATIONSHIPS in beside  # as in JSON:API
            has_id = is_typed or f"{path}/id" in self._asked_within
            self._objects[in_words(path)] = {*map(in_words, others), *(["id"] if has_id else [])}
            if not (self._look_into(members, f"{path}/") or refers or is_content):
                del self._objects[in_words(path)]
                return False
        self.objects.add(path)
        if objects is not field:
            self.lists[path] = field
        return True

    def _are_rows(self, path: str, field: FieldShape) -> bool:
        """Whether a list has rows of a junction, as `publications: [{"id": 9, "publication_id": 7}]`: the number is that of the row alone.

        What has a name is a record; of records of their own resource, the other may be the one above them.
        """
        objects, name = field.entries, singular(stem_of(path.rpartition("/")[2]))
        if objects is None or resource_named(name) == self._own:
            return False
        if any(words_of(key)[-1:] == [word] for key in objects.members for word in NAMES_OF_RECORDS):
            return False
        return any(
            member.seen == objects.seen and (is_named_as_id(key) or member.has_ids) and singular(stem_of(key)) == name
            for key, member in objects.members.items()
        )

    def shape(self, shape: RecordShape) -> RecordShape:
        """The shape of records whose objects are taken apart."""
        return replace(shape, fields=dict(self._shapes(shape.fields, "")))

    def _shapes(self, fields: Mapping[str, FieldShape], above: str) -> Iterator[tuple[str, FieldShape]]:
        for name, field in fields.items():
            path, objects = f"{above}{name}", objects_in(field)
            fields_within = self._objects.get(in_words(path))
            if fields_within is not None and objects is not None:
                inner = {member: part for member, part in objects.members.items() if in_words(member) in fields_within}
                yield from self._shapes(inner, f"{path}/")
            elif "/" not in name:
                yield path, field

    def record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """A record whose objects are taken apart; what lists of objects have are lists."""
        return members_apart(record, self)

    def __contains__(self, path: object) -> bool:
        """Whether the object at a path is taken apart, in any spelling."""
        return isinstance(path, str) and in_words(path) in self._objects

    def schema(self, schema: ResourceSchema) -> ResourceSchema:
        """A description of such records."""
        return replace(
            schema,
            record=self._described(schema.record),
            create=self._payload(schema.create),
            change=self._payload(schema.change),
        )

    def is_shown(self, path: str) -> bool:
        """Whether the source's records have a field at a path, in any spelling, even where none is taken apart."""
        fields: Mapping[str, FieldShape] = self.whole.fields
        for word in in_words(path).split("/"):
            field = next((field for name, field in fields.items() if in_words(name) == word), None)
            if field is None:
                return False
            fields = (field.entries or field).members
        return True

    def _payload(self, payload: PayloadSchema | None) -> PayloadSchema | None:
        if payload is None:
            return None
        lists = {*map(in_words, self.lists)}
        required = [name for name in payload.required if name not in self or in_words(name) in lists]
        return replace(payload, fields=self._described(payload.fields), required=required)

    def _described(self, fields: Mapping[str, FieldSchema]) -> dict[str, FieldSchema]:
        return dict(self._schemas(fields, "", read_only=False))

    def _schemas(
        self, fields: Mapping[str, FieldSchema], above: str, *, read_only: bool
    ) -> Iterator[tuple[str, FieldSchema]]:
        """Yield path and description of each field; a description that lacks the members of an object says nothing about them."""
        for name, described in fields.items():
            is_of_link = name == "id" and above and in_words(above[:-1]) in self._links_in_words
            path, is_filled = f"{above}{name}", read_only or (described.read_only and not is_of_link)
            members = (described.entries or described).members
            if path not in self:
                yield path, replace(described, read_only=is_filled)
            elif members:
                yield from self._schemas(members, f"{path}/", read_only=is_filled)
            else:
                within, depth = f"{in_words(path)}/", len(path.split("/"))
                known = (field for field in self.shape(self.whole).fields if in_words(field).startswith(within))
                inner = ("/".join([path, *field.split("/")[depth:]]) for field in known)
                yield from ((field, FieldSchema(read_only=is_filled)) for field in inner)


def spelled_otherwise(
    fields: Mapping[str, FieldShape], in_target: Mapping[str, FieldShape | FieldSchema], above: str = ""
) -> Iterator[str]:
    """Yield the path of each object that has members under other spellings in the target."""
    by_words = {in_words(name): field for name, field in in_target.items()}
    for name, field in fields.items():
        objects, field_in_target, path = objects_in(field), by_words.get(in_words(name)), f"{above}{name}"
        if objects is None or field_in_target is None or "/" in name:
            continue
        members = (field_in_target.entries or field_in_target).members
        names = {in_words(member): member for member in members}
        if any(names.get(in_words(member), member) != member for member in objects.members.keys() - members.keys()):
            yield path
        yield from spelled_otherwise(objects.members, members, f"{path}/")


def taken_although_filled(
    fields: Mapping[str, FieldShape], described: Mapping[str, FieldSchema], above: str = ""
) -> Iterator[str]:
    """Yield the path of each member of an object that services fill by its name, such as `href`, but that the target takes, as it says."""
    for name, field in fields.items():
        objects, taken_field, path = objects_in(field), described.get(name), f"{above}{name}"
        if objects is None or taken_field is None or taken_field.read_only or "/" in name:
            continue
        members = (taken_field.entries or taken_field).members
        for member in objects.members.keys() & members.keys():
            is_filled = is_managed(f"{path}/{member}") or (member == "id" and not objects.has_ids)
            if is_filled and not members[member].read_only:
                yield f"{path}/{member}"
        yield from taken_although_filled(objects.members, members, f"{path}/")


def objects_without_ids(fields: Mapping[str, FieldShape], above: str = "") -> Iterator[tuple[str, FieldShape]]:
    """Yield the path of each object, at any depth, that is no record of its own, and its shape; of lists those of their objects."""
    for name, field in fields.items():
        objects, path = objects_in(field), f"{above}{name}"
        if objects is not None and "/" not in name:
            yield from [(path, objects)] if "id" not in objects.members else []
            yield from objects_without_ids(objects.members, f"{path}/")


def is_embedded(path: str, objects: FieldShape) -> bool:
    """Whether objects are the records to which they refer, with a number of their own below the name of a resource."""
    return objects.has_ids and resource_named(reference_stem(path)) is not None


def is_tree(objects: FieldShape) -> bool:
    """Whether objects with ids have lists of such objects or of ids below them, which no mapping has at any depth."""
    return "id" in objects.members and any(
        names_own_kind(stem_of(name)) and Kind.LIST in member.kinds and (member.has_ids or member.may_be_ids)
        for name, member in objects.members.items()
    )
