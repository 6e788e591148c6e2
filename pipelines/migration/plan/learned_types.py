"""Learns how the records of a resource are moved: from the target's description, else from the records of both libraries.

Without a description every field of the source is sent: nothing says then that the target has no place for one. Publications are
documented, so that of them only the other fields are learned, and one is sent only where the target's description or its records have it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from pipelines.migration.model.field_mapping import OPEN, PLAIN, FieldMapping, SentAs, several
from pipelines.migration.model.resource_types import (
    COMPLETED,
    MERGEABLE,
    PUBLICATIONS,
    FieldRule,
    ResourceType,
    Source,
    is_written_later,
)
from pipelines.migration.model.target_reading import RecordListing
from pipelines.migration.plan.codes import DifferingCodes, keys_of_objects, texts_of
from pipelines.migration.plan.kinds_beside import DATA, is_word, objects_in, references_by_kind
from pipelines.migration.plan.link_members import members_of_links
from pipelines.migration.plan.merges import merge_request
from pipelines.migration.plan.numbers import IdsWithin, fields_with_ids, is_value, text_ids_in
from pipelines.migration.plan.taken_apart import TakenApart, is_of_own_kind, is_tree, reference_stem
from pipelines.records.additional_fields import is_counter, is_empty, is_managed
from pipelines.records.left_out import LeftOut
from pipelines.records.paths import ATTRIBUTES, objects_of, value_at
from pipelines.records.shapes.field_names import (
    fields_to_send,
    is_named_as_id,
    keys_of,
    kind_beside,
    may_be_count,
    may_name_records,
    named_kind,
    names_doer,
    names_own_kind,
    resource_called,
    resource_named,
    words_of,
)
from pipelines.records.shapes.observation import ANY_KEY, FieldShape, Kind, Observer, RecordShape
from pipelines.records.tables.publication_fields import AUTHOR_KEYS
from pipelines.records.tables.registry import PERSONAL
from pipelines.records.values import RecordId, compact_json, record_id, text_of
from pipelines.shapes.model import FieldSchema, PayloadSchema, ResourceSchema

Library = Mapping[str, RecordListing]
"""Resource → its records in the source."""


class KnownFields(NamedTuple):
    """What is known of the fields of a resource besides their shapes and a description."""

    leads_to: Mapping[str, str] = {}
    """Reference → the resource that the names beside its ids belong to."""
    may_refer: Collection[str] = ()
    """Fields of the source that may refer to records, whatever their names."""
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


_NOTHING_KNOWN = KnownFields()


class TypeLearner:
    """Learns how the records of one resource are moved.

    `assumed`: our own assumption, which counts where nothing was learned; `schema`: the target's description of the resource; `posted`:
    field → how the entries of a list at an address of its own are added, as in `FieldMapping.post`;
    `same_service`: whether both sides speak the same version; `asks_all`: whether each field is asked about that has an id anywhere in its
    values, else only those whose values are ids; `read`: the resources that are read in both libraries, and `library`: all those of the
    source.
    """

    def __init__(
        self,
        assumed: ResourceType,
        source: RecordListing,
        target: RecordListing,
        schema: ResourceSchema,
        *,
        posted: Mapping[str, str],
        same_service: bool,
        asks_all: bool,
        read: Library,
        library: Callable[[], Library],
    ) -> None:
        self._listing, self._target, self._library = source, target, library
        self.assumed, self._described = assumed, schema
        self._same_service = same_service
        self._text_ids = text_ids_in(source.records(), library())
        self._shapes = shape_of(source, assumed.ruled, self._text_ids), shape_of(target, assumed.ruled)
        self.by_kind = references_by_kind(source.records(), self._shapes[0], library())
        forms = {key: reference.form for key, reference in self.by_kind.items()}
        self._known = KnownFields(by_kind=forms, posted=posted, read=read)
        self._links, self._lost, self._with_ids = dict[str, list[str]](), list[str](), set[str]()
        self.codes: Mapping[str, DifferingCodes] = {}
        """Path → the codes of other records there that are others in the target, which are asked about."""
        self.type = self._learn()
        leads_to = dict[str, str]()
        if unknown := self.unknown_references:
            leads_to = resources_by_names(self.records(), unknown, read)
            self.type = self._learn(leads_to=leads_to)
        self._links = self._links_of(read)
        leads_to |= {f"{key}/id": leads_to[key] for key in self._links.keys() & leads_to.keys()}
        self.type = self._learn(leads_to=leads_to)
        while names := [*plain_fields(self.type, assumed), *self._unasked()]:
            may_refer = {key for key, ids in self._ids_within(names).items() if asks_all or ids.are_values}
            objects = {key for key in may_refer if objects_in(self.source.fields[key]) is not None}
            self._with_ids |= objects
            self.type = self._learn(may_refer={*self._known.may_refer, *may_refer})
            if not objects:
                break

    def _learn(self, **known: Any) -> ResourceType:
        """The type, with what is known of its fields now."""
        whole, of_target = self._shapes
        self.apart = TakenApart(whole, self.by_kind, self._links, self._with_ids)
        self.source, self.schema = self.apart.shape(whole), self.apart.schema(self._described)
        contradicted_in_source = set[str]()
        if self._same_service and self.assumed.sends_unproved:
            contradicted_in_source = contradicted_fields(self.schema, self.records())
            contradicted_in_source |= _contradicted_by_shape(self.schema, fields_to_send(self.source))
            contradicted_in_source -= _confirmed(self.schema, self.apart.shape(of_target))
        contradicted = contradicted_fields(self.schema, map(self.apart.record, self._target.records()))
        payload = self.schema.create.fields if self.schema.create else {}
        self.choices = {name: _choices(field) for name, field in payload.items() if name not in contradicted}
        """Field → the values that the target takes by its description, as far as its own records do not contradict it."""
        self._known = self._known._replace(
            contradicted=contradicted, contradicted_in_source=contradicted_in_source, **known
        )
        learned = learn_from_shapes(
            self.assumed, whole, of_target, self._described, known=self._known, apart=self.apart
        )
        lost = dict.fromkeys(self._lost, LeftOut.NOT_DESCRIBED)
        record_type = json_api_type([self._target, self._listing]) if ATTRIBUTES in whole.fields else ""
        wrapped_in = learned.wrapped_in or (DATA if record_type and not self._described.create else "")
        return msgspec.structs.replace(
            learned, left_out=learned.left_out | lost, record_type=record_type, wrapped_in=wrapped_in
        )

    def _links_of(self, read: Library) -> dict[str, list[str]]:
        """What the objects of a reference say of the link. It is lost where the target takes only numbers, or not all are objects."""
        links = members_of_links(self.records(), self.type, self.source, read)
        as_numbers = {
            key
            for path, part in self.type.parts.items()
            for key in part.keys_of(path)
            if not part.sent_as.startswith("object")
        }
        whole = as_numbers | {key for key in links if objects_in(self.source.fields[key]) is None}
        self._lost = [f"{key}/{member}" for key in links.keys() & whole for member in links[key]]
        return {key: members for key, members in links.items() if key not in whole}

    def _unasked(self) -> list[str]:
        """The fields that are left out because they, or objects in which they are, may have numbers of records, which is not asked yet."""
        left_out = {*self.unknown_references} & self.type.left_out.keys()
        asked = self._with_ids | {*self._known.may_refer}
        return [key for key in self.source.fields if key not in asked and left_out & {key, *objects_of([key])}]

    def ask(self, codes: Mapping[str, DifferingCodes]) -> None:
        """Ask what is sent for codes of records that are others in the target. Of persons, or of very many, the field is left out (I10)."""
        self.codes = {
            path: differing
            for path, differing in codes.items()
            if len(differing.in_target) <= MOST_ASKED
            and PERSONAL.isdisjoint(owner for owner, _field in differing.owners)
        }
        of_keys = {path for path in codes if path.endswith(f"/{ANY_KEY}")}
        self._with_ids |= objects_of(self.codes.keys() - of_keys)
        learned, values = self._learn(), {path: differing.in_target for path, differing in self.codes.items()}
        fields = {name: field.asking(values, name) for name, field in learned.fields.items()}
        asked = {path for name, field in fields.items() for path, part in field.parts(name) if part.values}
        unasked = codes.keys() - asked
        around = {name for name in fields if any(f"{path}/".startswith(f"{name}/") for path in unasked)}
        within = {name for name in fields if any(name.startswith(path.removesuffix(ANY_KEY)) for path in of_keys)}
        lost = around | within  # no line says which key is sent
        left_out = {key: LeftOut.UNKNOWN_REFERENCE for name in lost for key in fields.pop(name).keys_sent(name)}
        self.type = msgspec.structs.replace(learned, fields=fields, left_out=learned.left_out | left_out)

    def texts(self) -> dict[str, set[str]]:
        """Path of what may be nothing but codes, as values or as keys of objects → the different ones; none of persons (I10)."""
        keys = {} if self.type.personal else keys_of_objects(self._listing.records())
        return keys | texts_of(self.type, self.records())

    def is_known_by_names(self, key: str) -> bool:
        """Whether a field refers to the resource whose records have the names beside its numbers."""
        return key in self._known.leads_to

    @property
    def unknown_references(self) -> list[str]:
        """The fields of the source that may refer to records, nobody knows of which resource."""
        return [key for key, why in self.type.left_out.items() if why == LeftOut.UNKNOWN_REFERENCE] + [
            key
            for path, part in self.type.parts.items()
            if part.leads_to == OPEN
            for key in part.keys_of(path)
            if key in self.source.fields
        ]

    @cached_property
    def candidates(self) -> Mapping[str, IdsWithin]:
        """Field that may refer to records → the ids in its values."""
        unknown = self.unknown_references
        return self._ids_within(unknown) if unknown else {}

    def _ids_within(self, names: Collection[str]) -> dict[str, IdsWithin]:
        """Field of these → the ids in its values."""
        asks_quantities = self.type.resource != PUBLICATIONS
        return fields_with_ids(self.records(), names, self._library(), asks_quantities=asks_quantities)

    def choices_of(self, path: str) -> Sequence[str]:
        """What the target takes in a field: by its description, else the words of its records, where it has others than the source."""
        return self.choices.get(path, ()) or self._other_words.get(path, ())

    @property
    def asked(self) -> ResourceType:
        """The type with a question for each value that the target does not take, or has no word for."""
        values = self._other_values
        fields = {name: field.asking(values, name) for name, field in self.type.fields.items()}
        return msgspec.structs.replace(self.type, fields=fields)

    @property
    def _other_values(self) -> dict[str, list[str]]:
        """Field → its values that are not among those which the target takes; none of people (I10)."""
        parts = {} if self.type.personal else self.type.parts
        chosen = {path: choices for path in parts if (choices := self.choices_of(path))}
        others: dict[str, dict[str, None]] = {path: {} for path in chosen}
        for path, entry in entries_at(self.records(), {path: parts[path] for path in chosen}):
            text = text_of(entry)
            if text and text not in chosen[path] and text.isprintable() and len(others[path]) < MOST_ASKED:
                others[path][text] = None
        return {path: [*values] for path, values in others.items() if values}

    @cached_property
    def _other_words(self) -> dict[str, Sequence[str]]:
        parts = {} if self.type.personal else self.type.parts
        here = {path: words for path, words in words_in(self.records(), parts).items() if is_enumeration(words)}
        there = words_in(map(self.apart.record, self._target.records()), parts) if here else {}
        takes_booleans = {path for path, rule in self.type.takes.items() if rule.types == ("boolean",)}
        return {
            path: BOOLEANS if path in takes_booleans else sorted(there[path])
            for path, words in here.items()
            if path in takes_booleans or there.get(path, words).keys() - words.keys()
        }

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the records of the source, with the members of objects as fields of their own."""
        return map(self.apart.record, self._listing.records())

    def shape(self, key: str) -> FieldShape | None:
        """The shape of a field of the source, which may be a list of objects."""
        return self.source.fields.get(key) or self.apart.lists.get(key)

    @cached_property
    def author_members(self) -> list[str]:
        """What authors of publications have besides the documented members."""
        records = self._listing.records() if self.type.resource == PUBLICATIONS else ()
        authors = (
            author for record in records for author in several(record.get("authors")) if isinstance(author, dict)
        )
        return sorted({name for author in authors for name in author} - {*AUTHOR_KEYS})

    @cached_property
    def examples(self) -> dict[str, str]:
        """Field → the first value that records have there, as JSON, without what may be personal (I10)."""
        examples = dict[str, str]()
        keys = self.source.fields.keys() | self.apart.lists.keys()
        for record in () if self.type.personal else self._listing.records():
            for key in keys - examples.keys():
                field = self.shape(key)
                if not is_empty(value := value_at(record, key)) and field is not None and not field.is_map:
                    examples[key] = compact_json(_without_texts(value))[:LONGEST_EXAMPLE]
            if len(examples) == len(keys):
                break
        return examples


BOOLEANS = ("true", "false")
"""What a target takes for words such as `Y` and `N`, where its description says so."""

MOST_WORDS, FEWEST_USES = 12, 2
"""Different texts of an enumeration, and how often each is used, on average."""


def words_in(records: Iterable[Mapping[str, Any]], parts: Mapping[str, FieldMapping]) -> dict[str, Counter[str]]:
    """Field that has nothing but a few texts without numbers → these, and how often each is used. `parts`: fields by their paths."""
    plain = {path: part for path, part in parts.items() if not (part.refers or part.entries)}
    words = {path: Counter[str]() for path in plain}
    for path, entry in entries_at(records, plain):
        if len(words[path]) <= MOST_WORDS:
            words[path][entry if isinstance(entry, str) and not re.search("[0-9]", entry) else "0"] += 1
    return {path: uses for path, uses in words.items() if 0 < len(uses) <= MOST_WORDS and "0" not in uses}


def entries_at(records: Iterable[Mapping[str, Any]], parts: Mapping[str, FieldMapping]) -> Iterator[tuple[str, object]]:
    """Yield path and value of each entry of these fields that is not null. `records`: with the members of objects as fields."""
    for record in records if parts else ():
        for path, part in parts.items():
            entries = several(part.read_apart(record, path))
            yield from ((path, entry) for entry in entries if entry is not None)


def is_enumeration(words: Counter[str]) -> bool:
    """Whether the texts of a field are used again and again."""
    return len(words) > 1 and words.total() >= FEWEST_USES * len(words)


def json_api_type(listings: Iterable[RecordListing]) -> str:
    """The `type` of the first record of these listings that has the form of JSON:API; empty if none has."""
    records = (record for listing in listings for record in islice(listing.records(), 1))
    types = (record.get("type") for record in records if isinstance(record.get(ATTRIBUTES), dict))
    return next((name for name in types if isinstance(name, str)), "")


LONGEST_EXAMPLE = 60
"""Characters of an example."""

_CODE = re.compile(r"(?=\D*\d)[A-Z\d./:-]{1,24}")
"""Matches numbers, dates and codes, such as a barcode."""


def _without_texts(value: Any) -> Any:
    """A value whose texts are left out, unless they are codes or name a resource; one entry of a list."""
    if isinstance(value, dict):
        return {"…" if is_value(name) else name: _without_texts(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_without_texts(entry) for entry in value[:1]]
    return value if not isinstance(value, str) or _CODE.fullmatch(value) or named_kind(value) else "…"


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
    apart = apart or TakenApart(source)
    source, target, schema = apart.shape(source), apart.shape(target), apart.schema(schema)
    known = known._replace(of_target=target.fields)
    payload = schema.create if assumed.created else schema.change
    writable = {name: field for name, field in (payload.fields if payload else {}).items() if not field.read_only}
    shown = fields_to_send(source, writable)
    spellings = _other_spellings(shown, writable if payload and payload.fields else target.fields)
    in_target = {key: name for name, key in spellings.items()}
    may_be_sent = [in_target.get(key, key) for key in shown]
    # Without the word of a description that it is taken, a task that is completed would be open again
    may_be_sent = [
        name for name in may_be_sent if name != COMPLETED and (assumed.sends_unproved or name in target.fields)
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
    learned = _without_unread(learned, assumed, known.read)
    decided = {key for name, field in learned.fields.items() for key in field.keys_sent(name)} | learned.left_out.keys()
    left_out = {
        name: LeftOut.UNKNOWN_REFERENCE if name in known.by_kind else _why_left_out(name, payload, schema, field)
        for name, field in shown.items()
        if name not in decided
    }
    learned = _with_lists(msgspec.structs.replace(learned, left_out=left_out | learned.left_out), apart.lists)
    takes = {
        name: _rule(names.get(name), target.fields.get(name), with_choices=name not in known.contradicted)
        for name in (*learned.fields, *learned.required)
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
        keys=_keys(assumed, [name for name, field in learned.fields.items() if not _may_wait(field, assumed.resource)]),
        takes={name: rule for name, rule in takes.items() if rule != FieldRule()},
        merge=merge_request(assumed.resource, schema.merge) if assumed.resource in MERGEABLE else None,
        unproved=tuple(name for name in learned.fields if not proved & {name, *keys_of(name)}),
        author_members=_author_members(writable) if assumed.resource == PUBLICATIONS else (),
        answer_id=schema.answer_id,
        presign=schema.presign,
    )


def _author_members(writable: Mapping[str, FieldSchema]) -> tuple[str, ...]:
    """The texts that the target takes of an author besides the documented ones, such as `orcid`; no number, which may be of a record."""
    entries = writable["authors"].entries if "authors" in writable else None
    members = entries.members if entries else {}
    return tuple(
        name
        for name, field in members.items()
        if "string" in field.types and not (field.read_only or name in AUTHOR_KEYS or may_name_records(name, _TEXTS))
    )


_TEXTS = FieldShape(kinds={Kind.TEXT: 1}, digits=1)
"""A field with texts that are numbers."""


def _described_names(
    payload: PayloadSchema, schema: ResourceSchema, shown: Mapping[str, FieldShape], silent: Iterable[str]
) -> dict[str, FieldSchema | None]:
    """The fields that the target takes, by its description. `silent`: fields that records have, about which it may say nothing."""
    names: dict[str, FieldSchema | None] = {
        name: field for name, field in payload.fields.items() if not field.read_only and name != "id"
    }
    extra = undescribed_fields(schema, silent)
    if payload.is_open:
        extra += [name for name in shown if name not in (*names, *schema.record, COMPLETED)]
    extra += [name for name in names if _has_other_form(schema.record.get(name), shown.get(name))]
    return names | dict.fromkeys(extra, FieldSchema())


def _other_spellings(source: Collection[str], target: Iterable[str]) -> dict[str, str]:
    """Field of the target → that of the source which has the same name in another spelling: `call_number` and `callNumber`."""
    top = [name for name in target if "/" not in name and words_of(name)]
    names = {"_".join(words_of(key)): name for name in top for key in keys_of(name)}
    names |= {"_".join(words_of(name)): name for name in top}
    alike = {key: names.get("_".join(words_of(key)), key) for key in source if "/" not in key and words_of(key)}
    return {name: key for key, name in alike.items() if name not in source}


def _without_unread(learned: ResourceType, assumed: ResourceType, read: Collection[str]) -> ResourceType:
    """The type without references to resources that are not read, where a record goes without them: their numbers are of the source."""
    if assumed.needs_references:
        return learned
    unread = {name for name, resources in learned.references.items() if not {*resources} <= {*read}}
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
        others = (other for other in keys_of(name) if other not in assumed.ruled)
        keys = (name, *(other for other in others if other == key or other not in names or other not in shown))
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
        resource = resource_by_name(assumed, (name, key))
    elif not leads_to and key not in known.may_refer and (is_assumed_plain or not may_name_records(key, field)):
        return FieldMapping(any_order=True) if name in assumed.lists and _is_plain_list(field) else PLAIN
    elif not (leads_to or field.may_be_ids or field.has_ids or (key in known.may_refer and _is_readable(field))):
        return None
    if is_tree(field.entries or field):
        return None
    above, _, last = key.rpartition("/")
    beside = {path.removeprefix(f"{above}/"): path for path in shown if above and path.startswith(f"{above}/")}
    beside = {member: path for member, path in beside.items() if is_word(shown[path])}
    kind = beside.get(kind_beside(last, beside, in_object=True), "")
    shown_there = known.of_target.get(name)
    like = shown_there if shown_there and shown_there.kinds else field
    form = _FORMS[is_sent_as_object(described, like), is_sent_as_text(described, like)]
    return FieldMapping(leads_to=resource or OPEN, many=Kind.LIST in field.kinds, sent_as=form, kind=kind)


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


def _with_lists(learned: ResourceType, lists: Iterable[str]) -> ResourceType:
    """The type with one field for the objects of each of these lists, the inner ones first. Without its references, none is sent."""
    fields, left_out = {**learned.fields}, {**learned.left_out}
    for path in lists:
        within = f"{path}/"
        entries = {
            name.removeprefix(within): _relative(fields.pop(name), within)
            for name in [*fields]
            if name.startswith(within)
        }
        unsent = [why for name, why in left_out.items() if name.startswith(within)]
        if any(entry.refers for entry in entries.values()) and LeftOut.UNKNOWN_REFERENCE not in unsent:
            fields[path] = FieldMapping(many=True, entries=entries)
            continue
        left_out = {name: why for name, why in left_out.items() if not name.startswith(within)}
        order = (LeftOut.UNKNOWN_REFERENCE, LeftOut.LINK, *unsent)
        left_out[path] = next((why for why in order if why in unsent), LeftOut.UNKNOWN_REFERENCE)
    return msgspec.structs.replace(learned, fields=fields, left_out=left_out)


def _relative(field: FieldMapping, within: str) -> FieldMapping:
    """A field of a list's objects, as those have it."""
    keys = None if field.keys is None else tuple(key.removeprefix(within) for key in field.keys)
    return msgspec.structs.replace(field, keys=keys, kind=field.kind.removeprefix(within))


def plain_fields(learned: ResourceType, assumed: ResourceType) -> list[str]:
    """The fields of the source that are sent as they stand although nothing documents them, besides enumerations and names of records."""
    chosen = {name for name, rule in learned.takes.items() if rule.choices}
    covered = {*(assumed.fields if assumed.documented else assumed.key_fields), *learned.references, *chosen}
    return [
        key
        for path, part in learned.parts.items()
        if path not in covered and not part.refers and not part.entries
        for key in part.keys_of(path)
    ]


def _may_wait(field: FieldMapping, resource: str) -> bool:
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
    """Whether ids of a field are texts."""
    within = [field.entries, field.members.get("id"), field.entries.members.get("id") if field.entries else None]
    return any(Kind.TEXT in part.kinds for part in (field, *within) if part is not None)


def is_sent_as_object(schema: FieldSchema | None, field: FieldShape) -> bool:
    """Whether the ids of a reference are sent in objects: by the description, else as the records have them."""
    if schema is None or not (schema.types or schema.members or schema.entries):
        return field.has_ids
    return bool(schema.members or (schema.entries is not None and schema.entries.members))


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


def _keys(assumed: ResourceType, fields: list[str]) -> tuple[tuple[str, ...], ...]:
    """The fields that name a record: those that we know to do so, in any spelling, else all of `fields` together."""
    spelled = {"".join(words_of(name.rpartition("/")[2])): name for name in reversed(fields)}
    by_words = [[spelled.get("".join(words_of(name))) for name in names] for names in assumed.keys]
    if keys := [tuple(filter(None, names)) for names in by_words if None not in names]:
        return tuple(keys)
    ends = {words[-1]: name for name in reversed(fields) if (words := words_of(name))}
    whole = (spelled.get(word) for word in ("name", "title", "label", "heading", "code", "number"))
    first = next((name for name in (*whole, *map(ends.get, ("name", "title", "label", "heading"))) if name), None)
    return ((first, *(name for name in fields if name != first)),) if first else (tuple(fields or ("id",)),)


def _why_left_out(name: str, payload: PayloadSchema | None, schema: ResourceSchema, field: FieldShape) -> str:
    """A service fills counters, times and addresses itself, and who made a record; no other link between records."""
    is_described = payload is not None and (name in payload.fields or name in schema.record)
    if Kind.LIST in field.kinds or not is_described:
        is_link = field.has_ids or may_name_records(name, field)
    else:
        is_link = _is_reference(name, name, field) and not names_doer(name)
    if is_link:
        return LeftOut.LINK
    if payload is None:
        return LeftOut.NOT_SHOWN
    return LeftOut.READ_ONLY if is_described else LeftOut.NOT_DESCRIBED


def shape_of(listing: RecordListing, ruled: Collection[str] = (), text_ids: Container[str] = ()) -> RecordShape:
    """The shape of all records of a listing, without some of their fields. `text_ids`: the texts that are ids."""
    observer = Observer(text_ids)
    observer.observe(
        {name: value for name, value in record.items() if name not in ruled} for record in listing.records()
    )
    return observer.shape


MOST_ASKED = 50
"""Values of one field that are asked about."""

PAIRS = 300
"""Ids with a name that are compared, of each field."""


def resources_by_names(
    records: Iterable[Mapping[str, Any]], keys: Iterable[str], listings: Mapping[str, RecordListing]
) -> dict[str, str]:
    """Field → the resource to which it refers, where its objects have a name beside the id, and that record has this very name.

    `records`: those with the fields `keys`; `listings`: the resources to which they may refer.
    """
    pairs: dict[str, dict[RecordId, str]] = {key: {} for key in keys}
    for record in records:
        for key, names_by_id in pairs.items():
            for entry in several(record.get(key)) if len(names_by_id) < PAIRS else ():
                members = entry if isinstance(entry, dict) else {}
                names = [text for name, text in members.items() if name != "id" and isinstance(text, str) and text]
                if names and (number := record_id(members.get("id"))) is not None:
                    names_by_id[number] = names[0]
    fits = {key: dict.fromkeys(listings, 0) for key in pairs}
    for resource, listing in listings.items():
        for record in listing.records() if any(pairs.values()) else ():
            for key, names_by_id in pairs.items():
                known_name = names_by_id.get(record_id(record.get("id")) or 0)
                if known_name is not None:
                    fits[key][resource] += 1 if known_name in record.values() else -len(names_by_id)
    best = {key: max(counts, key=lambda candidate: counts[candidate], default="") for key, counts in fits.items()}
    return {key: resource for key, resource in best.items() if resource and fits[key][resource] > 0}


def undescribed_fields(schema: ResourceSchema, names: Iterable[str]) -> list[str]:
    """Those fields of records about which a description of records and payloads is silent, whatever the form in which it may have them."""
    payload = schema.create or schema.change
    if not schema.record or payload is None:
        return []
    described = {*schema.record, *(key for name in payload.fields for key in keys_of(name))}
    return sorted({*names} - described)


def _contradicted_by_shape(schema: ResourceSchema, shown: Mapping[str, FieldShape]) -> set[str]:
    """Fields about which records contradict a description: it lacks them, or has another type."""
    payload = schema.create.fields if schema.create else {}
    contradicted = {
        name
        for name, field in payload.items()
        if name in shown and not shown[name].has_ids and _types(field, shown[name]) != _types(field, None)
    }
    return contradicted.union(undescribed_fields(schema, shown))


def _confirmed(schema: ResourceSchema, target: RecordShape) -> set[str]:
    """Fields of which the target's own records have the type that its description says."""
    payload = schema.create.fields if schema.create else {}
    shown = {name: target.fields[name] for name in payload.keys() & target.fields.keys()}
    return {name for name, field in shown.items() if field.kinds and _types(payload[name], field)}


def contradicted_fields(schema: ResourceSchema, records: Iterable[Mapping[str, Any]]) -> set[str]:
    """The fields with an enumeration that records do not keep to: the description is wrong about them."""
    payload = schema.create.fields if schema.create else {}
    rules = {name: rule for name, field in payload.items() if (rule := FieldRule(_choices(field))).choices}
    return {
        name
        for record in (records if rules else ())
        for name, rule in rules.items()
        if any(entry is not None and rule.refusal(entry) for entry in several(record.get(name)))
    }


MOST_ADDITIONAL = 100
"""Additional fields of publications that a plan looks at; the service documents a dozen."""

_FIELD_NAME = re.compile(r"[\w-]{1,60}")
_JSON_TYPES = {
    Kind.BOOLEAN: "boolean",
    Kind.INTEGER: "integer",
    Kind.LARGE_INTEGER: "integer",
    Kind.NUMBER: "number",
    Kind.OBJECT: "object",
    Kind.LIST: "array",
}
"""Kind of values → the name of JSON Schema; all others are strings."""


def additional_names(names: Iterable[str], publications: ResourceType) -> list[str]:
    """Those of the names of a source's fields of which publications may have more than the documented ones, in alphabetical order.

    Of names that differ only in case, which a table cannot tell apart, the first counts.
    """
    additional: dict[str, str] = {}
    for name in names:
        is_known = name in publications.ruled or (is_managed(name) and not is_counter(name))
        if not is_known and _FIELD_NAME.fullmatch(name) and len(additional) < MOST_ADDITIONAL:
            additional.setdefault(name.lower(), name)
    return sorted(additional.values())


def _rule(described: FieldSchema | None, shown: FieldShape | None, *, with_choices: bool) -> FieldRule:
    """What a description takes in a field, as far as the target's own records do not contradict it."""
    if described is None:
        return FieldRule()
    return FieldRule(
        _choices(described) if with_choices else (),
        _types(described, shown),
        _types(described.entries, shown.entries if shown else None),
    )


def _choices(field: FieldSchema) -> tuple[str, ...]:
    return tuple(field.choices or (field.entries.choices if field.entries else ()))


def _types(field: FieldSchema | None, shown: FieldShape | None) -> tuple[str, ...]:
    """The types of a field; none where one is no type of JSON Schema, or where records have others."""
    types = {*field.types} - {"null"} if field else set[str]()
    shown_types = {_JSON_TYPES.get(Kind(kind), "string") for kind in shown.kinds} if shown else set[str]()
    if "number" in types:
        shown_types.discard("integer")
    return tuple(sorted(types)) if shown_types <= types <= {*_JSON_TYPES.values(), "string"} else ()
