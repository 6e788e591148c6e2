"""Learns how each field of a resource is sent: from the target's description, else from the shapes of the records of both libraries.

Without a description every field of the source is sent: nothing says then that the target has no place for one. Publications are
documented, so that of them only the other fields are learned, and one is sent only where the target's description or its records have it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from itertools import chain
from typing import NamedTuple

import msgspec

from pipelines.migration.mapping.descriptions import described_rule, merge_request, undescribed_fields
from pipelines.migration.mapping.kinds_beside import is_word
from pipelines.migration.mapping.taken_apart import TakenApart, is_tree
from pipelines.migration.model.field_mapping import OPEN, PLAIN, FieldMapping, SentAs
from pipelines.migration.model.resource_types import (
    COMPLETED,
    MERGEABLE,
    PUBLICATIONS,
    FieldRule,
    ResourceType,
    Source,
    is_written_later,
)
from pipelines.records.additional_fields import in_snake_case
from pipelines.records.left_out import LeftOut
from pipelines.records.paths import ATTRIBUTES, objects_of
from pipelines.records.shapes.field_names import (
    NAMES_OF_RECORDS,
    fields_to_send,
    in_words,
    is_named_as_id,
    is_of_own_kind,
    keys_of,
    kind_beside,
    may_be_count,
    may_name_records,
    names_doer,
    names_own_kind,
    reference_stem,
    resource_called,
    resource_named,
    words_of,
)
from pipelines.records.shapes.observation import FieldShape, Kind, RecordShape
from pipelines.records.tables.publication_fields import AUTHORS
from pipelines.shapes.model import FieldSchema, PayloadSchema, ResourceSchema


class KnownFields(NamedTuple):
    """What is known of the fields of a resource besides their shapes and a description."""

    leads_to: Mapping[str, str] = {}
    """Reference → the resource that the names beside its ids belong to."""
    may_refer: Collection[str] = ()
    """Fields of the source that may refer to records, whatever their names."""
    doubted: Collection[str] = ()
    """References whose ids are rather those of another resource than of the one that their names say."""
    by_kind: Mapping[str, FieldMapping | None] = {}
    """References to records of several resources; None for one that no mapping can have."""
    contradicted: Collection[str] = ()
    """Fields whose description the target's own records do not keep to."""
    contradicted_in_source: Collection[str] = ()
    """Fields about which records of the source, which is the same service, contradict it: the target may still take them."""
    of_target: Mapping[str, FieldShape] = {}
    """The fields of the target's records."""
    posted: Mapping[str, str] = {}
    """Field → how the entries of a list at an address of its own are added, as in `FieldMapping.post`."""
    read: Collection[str] = ()
    """The resources that are read in both libraries."""
    unique: Callable[[], Container[str]] = frozenset
    """The texts that tell records from each other, as `unique_texts` finds them."""


_NOTHING_KNOWN = KnownFields()


def learn_from_shapes(
    assumed: ResourceType,
    source: RecordShape,
    target: RecordShape,
    schema: ResourceSchema,
    *,
    known: KnownFields = _NOTHING_KNOWN,
    apart: TakenApart | None = None,
) -> ResourceType:
    """How records are moved, by the shapes of those of both sides. `apart`: the objects of the source's that are taken apart."""
    if not source.records:
        return assumed
    apart = apart or TakenApart(source, own=assumed.resource)
    source, target, schema = apart.shape(source), apart.shape(target), apart.schema(schema)
    known = known._replace(of_target=target.fields)
    payload = schema.create if assumed.created else schema.change
    writable = payload.writable if payload else {}
    shown = fields_to_send(source, writable)
    spellings = _other_spellings(shown, writable if payload and payload.fields else target.fields)
    in_target = {key: name for name, key in spellings.items()}
    may_be_sent = [in_target.get(key, key) for key in shown]
    # Without the word of a description that it is taken, a task that is completed would be open again
    may_be_sent = [
        name
        for name in may_be_sent
        if in_snake_case(name) != COMPLETED and (assumed.sends_unproved or name in target.fields)
    ]
    if payload is None or not payload.fields:
        payload, names = None, dict[str, FieldSchema | None].fromkeys(may_be_sent)
        proved = {*target.fields, *assumed.fields}
    else:
        names = _described_names(
            payload, schema, shown, {*target.fields, *known.contradicted_in_source}.intersection(may_be_sent)
        )
        names = {name: field for name, field in names.items() if name not in assumed.ruled and name not in in_target}
        proved = {*target.fields, *known.contradicted, *(names.keys() - known.contradicted_in_source)}
    method = schema.change.method if payload and schema.change else ""
    learned = _from_names(assumed, names, shown, spellings, payload, known, method)
    content = {AUTHORS} if assumed.resource == PUBLICATIONS else set[str]()
    learned = _without_unread(learned, assumed, known.read, content)
    decided = {key for name, field in learned.fields.items() for key in field.keys_sent(name)} | learned.left_out.keys()
    left_out = {
        name: LeftOut.UNKNOWN_REFERENCE if name in known.by_kind else _why_left_out(name, payload, schema, field)
        for name, field in shown.items()
        if name not in decided
    }
    plain_within = [
        name for name, field in learned.fields.items() if name.partition("/")[0] in content and not field.refers
    ]
    learned = _with_lists(msgspec.structs.replace(learned, left_out=left_out | learned.left_out), apart.lists, content)
    takes = {
        name: described_rule(names.get(name), target.fields.get(name), with_choices=name not in known.contradicted)
        for name in (*learned.fields, *learned.required, *plain_within)
        if name not in learned.references and name not in known.contradicted_in_source
    }
    proved |= objects_of(proved)
    added = {
        name: msgspec.structs.replace(learned.fields[name], post=how)
        for name, how in known.posted.items()
        if name in learned.references
    }
    return msgspec.structs.replace(
        learned,
        fields=learned.fields | added,
        keys=_keys(
            assumed,
            [name for name, field in learned.fields.items() if not may_wait(field, assumed.resource)],
            [name for name, field in learned.fields.items() if field.asks_where],
            [name for name, field in learned.fields.items() if not (field.refers or field.entries)],
            known.unique,
        ),
        takes={name: rule for name, rule in takes.items() if rule != FieldRule()},
        merge=merge_request(assumed.resource, schema.merge) if assumed.resource in MERGEABLE else None,
        unproved=tuple(name for name in learned.fields if not proved & {name, *keys_of(name)}),
        answer_id=schema.answer_id,
        presign=schema.presign,
    )


def _described_names(
    payload: PayloadSchema, schema: ResourceSchema, shown: Mapping[str, FieldShape], silent: Iterable[str]
) -> dict[str, FieldSchema | None]:
    """The fields that the target takes, by its description. `silent`: fields that records have, about which it may say nothing."""
    names: dict[str, FieldSchema | None] = {name: field for name, field in payload.writable.items() if name != "id"}
    extra = undescribed_fields(schema, silent)
    if payload.is_open:
        known = {*names, *schema.record}
        extra += [name for name in shown if name not in known and in_snake_case(name) != COMPLETED]
    extra += [name for name in names if _has_other_form(schema.record.get(name), shown.get(name))]
    return names | dict.fromkeys(extra, FieldSchema())


def _other_spellings(source: Collection[str], target: Iterable[str]) -> dict[str, str]:
    """Field of the target → that of the source which has the same name in another spelling: `call_number` and `callNumber`."""
    names = {in_words(key): name for name in target for key in keys_of(name)} | {
        in_words(name): name for name in target
    }
    alike = {key: names.get(in_words(key), key) for key in source}
    return {name: key for key, name in alike.items() if name not in source}


def _without_unread(
    learned: ResourceType, assumed: ResourceType, read: Collection[str], content: Container[str]
) -> ResourceType:
    """The type without references to resources that are not read, where a record goes without them: their numbers are of the source.

    The objects of a list in `content` go without them, and the target keeps its own there.
    """
    if assumed.needs_references:
        return learned
    unread = {
        name
        for name, resources in learned.references.items()
        if not {*resources} <= {*read} and name.partition("/")[0] not in content
    }
    left_out = {key: LeftOut.LINK for name in unread for key in learned.fields[name].keys_sent(name)}
    return msgspec.structs.replace(
        learned,
        fields={name: field for name, field in learned.fields.items() if name not in unread},
        left_out=left_out | learned.left_out,
    )


def _from_names(  # noqa: PLR0917  what is known from each side
    assumed: ResourceType,
    names: Mapping[str, FieldSchema | None],
    shown: Mapping[str, FieldShape],
    spellings: Mapping[str, str],
    payload: PayloadSchema | None,
    known: KnownFields,
    method: str,
) -> ResourceType:
    """The type with the fields of these names that the source has. `shown`: the fields of its records; `spellings`: their other names."""
    fields, left_out = dict[str, FieldMapping](), dict[str, str]()
    in_order = [
        *(name for name in assumed.fields if name in names),
        *(name for name in names if name not in assumed.fields),
    ]
    for name in in_order:
        key = next((key for key in (*keys_of(name), spellings.get(name)) if key in shown), None)
        if key is None or (key != name and key in names):  # the payload has that field, too
            continue
        is_called_so = in_words(key) == in_words(name)
        if not is_called_so and not _may_be_same(name, shown[key], names[name], known.of_target.get(name)):
            continue
        if key in known.by_kind:
            form = known.by_kind[key]
            as_text = is_sent_as_text(names[name], shown[key])
            is_there = form is not None and form.kind in names
            mapping = msgspec.structs.replace(form, sent_as=_FORMS[False, as_text]) if form and is_there else None
        else:
            mapping = _mapping_of(assumed, name, key, shown, names[name], known)
        if mapping is None:
            left_out[key] = LeftOut.UNKNOWN_REFERENCE
            continue
        spelled = (field for field in keys_of(name) if field not in assumed.ruled)
        keys = (name, *(field for field in spelled if field == key or field not in names or field not in shown))
        keys = (name, key) if name in spellings else keys
        is_alone = key == name and shown.keys().isdisjoint({*keys} - {name})
        fields[name] = mapping if is_alone else msgspec.structs.replace(mapping, keys=(*dict.fromkeys(keys),))
    for kind in [field.kind for field in fields.values() if field.kind]:
        fields.pop(kind, None)  # it goes with the id beside it
    return ResourceType(
        assumed.resource,
        fields,
        assumed.keys,
        assumed.guarded,
        assumed.created,
        required=tuple(payload.required if payload else ()),
        left_out=left_out,
        known_from=Source.DESCRIPTION if payload else Source.RECORDS,
        wrapped_in=payload.wrapped_in if payload else "",
        method=method or assumed.method,
    )


def _mapping_of(  # noqa: PLR0917  what is known of it
    assumed: ResourceType,
    name: str,
    key: str,
    shown: Mapping[str, FieldShape],
    described: FieldSchema | None,
    known: KnownFields,
) -> FieldMapping | None:
    """How one field is sent that the source has under a key; a question where it may refer to records, nobody knows to which.

    None where such a field has a form that no reference has.
    """
    field, leads_to = shown[key], known.leads_to.get(key)
    resource = leads_to
    is_assumed_plain = name in assumed.fields and name not in assumed.references
    if not leads_to and _is_reference(name, key, field):
        resource = "" if key in known.doubted else resource_by_name(assumed, (name, key))
    elif not leads_to and key not in known.may_refer and (is_assumed_plain or not may_name_records(key, field)):
        return FieldMapping(any_order=True) if name in assumed.lists and _is_plain_list(field) else PLAIN
    elif not (leads_to or field.may_be_ids or field.has_ids or (key in known.may_refer and _is_readable(field))):
        return None
    if is_tree(field.entries or field):
        return None
    above, _, last = key.rpartition("/")
    beside = {path.removeprefix(f"{above}/"): path for path in shown if above and path.startswith(f"{above}/")}
    beside = {member: path for member, path in beside.items() if is_word(shown[path])}
    many = Kind.LIST in field.kinds
    kind = "" if many else beside.get(kind_beside(last, beside, in_object=True), "")
    shown_there = known.of_target.get(name)
    like = shown_there if shown_there and _shows_values(shown_there) else field
    form = _FORMS[is_sent_as_object(described, like), is_sent_as_text(described, like)]
    return FieldMapping(leads_to=resource or OPEN, many=many, sent_as=form, kind=kind)


def _may_be_same(name: str, field: FieldShape, described: FieldSchema | None, in_target: FieldShape | None) -> bool:
    """Whether a field of another name may be that of the target. A list of ids is none that has their number."""
    types = {*described.types} if described else set[str]()
    shows_no_list = in_target is not None and _shows_values(in_target) and Kind.LIST not in in_target.kinds
    if Kind.LIST in field.kinds and ("array" not in types if types else shows_no_list):
        return False
    return _have_same(name, field, described, in_target)


def _have_same(name: str, field: FieldShape, described: FieldSchema | None, in_target: FieldShape | None) -> bool:
    """Whether both fields have ids, or names: one of the source, and that of the target which is called `location_id` for `location`."""
    has_ids = field.may_be_ids or field.has_ids
    if is_named_as_id(name):
        return has_ids
    if in_target is not None and _shows_values(in_target):
        return has_ids == (in_target.may_be_ids or in_target.has_ids)
    if not has_ids:
        return True
    within = described and (described.entries or described)
    if within is None or not (within.types or within.members):
        return True
    if within.members:
        return "id" in within.members
    return _has_texts(field) or {*within.types} - {"null"} != {"string"}


def _shows_values(field: FieldShape) -> bool:
    """Whether records have values in a field, which an empty list is not."""
    return bool({*field.kinds} - {Kind.LIST}) or (field.entries is not None and _shows_values(field.entries))


def _is_readable(field: FieldShape) -> bool:
    """Whether a field has no objects: a person may say that its values are no ids."""
    return Kind.OBJECT not in field.kinds and (field.entries is None or _is_readable(field.entries))


def resource_by_name(assumed: ResourceType, paths: Iterable[str]) -> str:
    """The resource to which a reference leads for certain by one of its names; empty if there is none.

    That is a resource's own name, that of a reference which the document, or else we, know of such records, or one such as `parent_id`.
    """
    known = {reference_stem(name): field.leads_to for name, field in assumed.fields.items()}
    for path in paths:
        stem = reference_stem(path)
        if resource := known.get(stem) or resource_called(stem) or (assumed.resource if is_of_own_kind(path) else ""):
            return resource
    return ""


_FORMS: dict[tuple[bool, bool], SentAs] = {
    (False, False): "number",
    (False, True): "text",
    (True, False): "object",
    (True, True): "object with a text",
}
"""Whether an id is sent in an object, and whether as a text → its form."""


def _with_lists(learned: ResourceType, lists: Iterable[str], content: Container[str]) -> ResourceType:
    """The type with one field for the objects of each of these lists, the inner ones first.

    Without its links, none is sent, except of those in `content`, whose objects say something without them.
    """
    fields, left_out = {**learned.fields}, {**learned.left_out}
    for path in lists:
        within, in_target = f"{path}/", _spelled_in_target(path, fields)
        entries = {
            name.removeprefix(f"{in_target}/"): _relative(fields.pop(name), within, f"{in_target}/")
            for name in [*fields]
            if name.startswith(f"{in_target}/")
        }
        unsent = [why for name, why in left_out.items() if name.startswith(within)]
        has_links = any(entry.refers for entry in entries.values()) or LeftOut.LINK not in unsent
        if path in content:
            fields |= {path: FieldMapping(many=True, entries=entries)} if entries else {}
            continue
        if entries and has_links and LeftOut.UNKNOWN_REFERENCE not in unsent:
            keys = None if path == in_target else (in_target, path)
            fields[in_target] = FieldMapping(keys=keys, many=True, entries=entries)
            continue
        left_out = {name: why for name, why in left_out.items() if not name.startswith(within)}
        order = (LeftOut.UNKNOWN_REFERENCE, LeftOut.LINK, *unsent)
        left_out[path] = next((why for why in order if why in unsent), LeftOut.UNKNOWN_REFERENCE)
    return msgspec.structs.replace(learned, fields=fields, left_out=left_out)


def _spelled_in_target(path: str, fields: Iterable[str]) -> str:
    """The path of a list of objects as the fields within are named; its own where there are none."""
    count, words = len(path.split("/")), in_words(path)
    holders = ("/".join(name.split("/")[:count]) for name in fields if name.count("/") >= count)
    return next((holder for holder in holders if in_words(holder) == words), path)


def _relative(field: FieldMapping, *within: str) -> FieldMapping:
    """A field of a list's objects, as those have it. `within`: the list's paths, each with a slash behind it."""
    above = re.compile(f"^(?:{'|'.join(map(re.escape, within))})")
    keys = None if field.keys is None else tuple(dict.fromkeys(above.sub("", key) for key in field.keys))
    return msgspec.structs.replace(field, keys=keys, kind=above.sub("", field.kind))


def may_wait(field: FieldMapping, resource: str) -> bool:
    """Whether a reference may lead to records that do not exist yet, which cannot tell a record from others."""
    return field.asks_where or any(is_written_later(referred, resource) for referred in field.resources)


def _is_reference(name: str, key: str, field: FieldShape) -> bool:
    """Whether a field holds ids of other records: by its name, or because its objects have an id."""
    if field.has_ids:
        return True
    if not field.kinds or not field.may_be_ids or (Kind.LIST not in field.kinds and may_be_count(key)):
        return False
    stems = (reference_stem(name), reference_stem(key))
    if any(resource_named(stem) is not None or names_own_kind(stem) for stem in stems):
        return True
    return not _has_texts(field) and (is_named_as_id(name) or is_named_as_id(key))


def _has_other_form(described: FieldSchema | None, field: FieldShape | None) -> bool:
    """Whether records have ids in objects where their own description says that they have them bare: it is wrong about this field."""
    if described is None or field is None or not field.has_ids or not described.types:
        return False
    is_list = described.entries is not None and {*described.entries.types} & {"object"}
    return not (is_list or described.members or "object" in described.types or "array" in described.types)


def _has_texts(field: FieldShape) -> bool:
    """Whether ids of a field are texts, and none is a number."""
    within = [field.entries, field.members.get("id"), field.entries.members.get("id") if field.entries else None]
    return any(
        Kind.TEXT in part.kinds and Kind.INTEGER not in part.kinds for part in (field, *within) if part is not None
    )


def is_sent_as_object(schema: FieldSchema | None, field: FieldShape) -> bool:
    """Whether the ids of a reference are sent in objects: by the description, else as the records have them."""
    described = (schema.entries or schema) if schema is not None else FieldSchema()
    types = {*described.types} - {"null", "array"}
    if described.members or types == {"object"}:
        return True
    return field.has_ids and (not types or "object" in types)


def is_sent_as_text(schema: FieldSchema | None, field: FieldShape) -> bool:
    """Whether the ids of a reference are sent as texts: by the description, else as the records have them."""
    entries = schema.entries if schema else None
    described = [schema, entries, *(part.members.get("id") for part in (schema, entries) if part is not None)]
    types = {kind for part in described if part is not None for kind in part.types}
    if types & {"integer", "number", "string"}:
        return not types & {"integer", "number"}
    return _has_texts(field)


def _is_plain_list(field: FieldShape) -> bool:
    entries = field.entries or FieldShape()
    return {*field.kinds} <= {Kind.LIST} and not entries.members


def _keys(
    assumed: ResourceType, fields: list[str], asked: list[str], plain: list[str], unique: Callable[[], Container[str]]
) -> tuple[tuple[str, ...], ...]:
    """The fields that name a record: those that we know to do so, in any spelling, else a text that is unique.

    Else all of `fields`, and of those that are asked.
    """
    own = [name for name in fields if _is_own(name)]
    spelled = {"".join(words_of(name.rpartition("/")[2])): name for name in reversed(own)}
    by_words = [[spelled.get("".join(words_of(name))) for name in names] for names in assumed.keys]
    if keys := [tuple(filter(None, names)) for names in by_words if None not in names]:
        rest = [name for name in (*fields, *asked) if name not in chain(*keys)]
        rest.sort(key=lambda name: name in plain)  # a copy without a barcode has a place, if no call number
        is_short = None in by_words[-1] and len(by_words[-1]) > 1 and rest and rest[0] not in plain
        return (*keys, tuple(rest)) if is_short else tuple(keys)
    ends = {words[-1]: name for name in reversed(own) if (words := words_of(name))}
    known = (spelled.get(word) for word in (*NAMES_OF_RECORDS, "code", "number"))
    first = next((name for name in (*known, *map(ends.get, NAMES_OF_RECORDS)) if name), None)
    whole = (*([first] if first else ()), *(name for name in (*fields, *asked) if name != first))
    may_be_alone = any(len(names) == 1 for names in assumed.keys)  # two tasks may have one title
    known_unique = unique() if plain and may_be_alone else ()
    texts = (name for name in whole if name in plain and _is_own(name))
    alone = next((name for name in texts if in_words(name) in known_unique), None)
    return ((alone,),) if alone else (whole or ("id",),)


_CONTENT = frozenset({ATTRIBUTES, "data", "fields", "metadata", "properties"})
"""Members with the fields of a record, as JSON:API and others have them."""


def _is_own(path: str) -> bool:
    """Whether a field is of the record itself: `owner/name` is the name of something else."""
    above, _, _name = path.rpartition("/")
    return above in ("", *_CONTENT)


def _why_left_out(name: str, payload: PayloadSchema | None, schema: ResourceSchema, field: FieldShape) -> str:
    """A service fills counters, times and addresses itself, and who made a record; no other link between records."""
    is_described = payload is not None and (name in payload.fields or name in schema.record)
    is_too_deep = Kind.OBJECT in field.kinds and not field.members
    if Kind.LIST in field.kinds or not is_described:
        is_link = field.has_ids or is_too_deep or may_name_records(name, field)
    else:
        is_link = _is_reference(name, name, field) and not names_doer(name)
    if is_link:
        return LeftOut.LINK
    if payload is None:
        return LeftOut.NOT_SHOWN
    return LeftOut.READ_ONLY if is_described else LeftOut.NOT_DESCRIBED
