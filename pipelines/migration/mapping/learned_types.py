"""Learns how the records of a resource are moved, from the values of its records: where references lead, and what is to be asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import islice
from typing import Any

import msgspec

from pipelines.migration.mapping.codes import DifferingCodes, keys_of_objects, texts_of
from pipelines.migration.mapping.descriptions import (
    choices_within,
    confirmed_fields,
    contradicted_by_shape,
    contradicted_fields,
    described_choices,
    described_types,
)
from pipelines.migration.mapping.enumerations import BOOLEAN, BOOLEANS, entries_at, is_enumeration, is_taken, words_in
from pipelines.migration.mapping.ids_in_values import MOST_VALUES, IdsWithin, fields_with_ids, is_value, text_ids_in
from pipelines.migration.mapping.kinds_beside import objects_in, references_by_kind
from pipelines.migration.mapping.learned_fields import KnownFields, learn_from_shapes
from pipelines.migration.mapping.link_members import members_of_links
from pipelines.migration.mapping.parts_of_authors import PublicationListing, described_parts
from pipelines.migration.mapping.taken_apart import (
    TakenApart,
    objects_without_ids,
    spelled_otherwise,
    taken_although_filled,
)
from pipelines.migration.mapping.unique_texts import unique_texts
from pipelines.migration.model.field_mapping import OPEN, PLAIN, id_of, several
from pipelines.migration.model.resource_types import PUBLICATIONS, USERS, ResourceType
from pipelines.migration.model.target_reading import RecordListing, numbered
from pipelines.records.additional_fields import is_counter, is_empty, is_managed
from pipelines.records.left_out import LeftOut
from pipelines.records.paths import ATTRIBUTES, DATA, members_apart, objects_at, objects_of, value_at
from pipelines.records.shapes.field_names import (
    fields_to_send,
    in_words,
    is_of_own_kind,
    is_quantity,
    named_kind,
    names_doer,
)
from pipelines.records.shapes.observation import ANY_KEY, FieldShape, Observer, RecordShape
from pipelines.records.tables.publication_fields import AUTHORS
from pipelines.records.tables.registry import PERSONAL, beside_links
from pipelines.records.values import RecordId, compact_json, text_of
from pipelines.shapes.model import FieldSchema, ResourceSchema

Library = Mapping[str, RecordListing]
"""Resource → its records in the source."""


class TypeLearner:
    """Learns how the records of one resource are moved.

    `assumed`: our own assumption, which counts where nothing was learned; `schema`: the target's description of the resource; `posted`:
    field → how the entries of a list at an address of its own are added, as in `FieldMapping.post`;
    `same_service`: whether both sides speak the same version; `asks_all`: whether each field is asked about that has an id anywhere in its
    values, else only those whose values are ids; `read`: the resources that are read in both libraries, and `library`: all those of the
    source; `unread`: those whose ids are not known.
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
        unread: Sequence[str],
    ) -> None:
        ruled, is_publications = assumed.ruled, assumed.resource == PUBLICATIONS
        if is_publications:
            source, target = (
                PublicationListing(listing.path, listing.key, listing.lists) for listing in (source, target)
            )
            schema, ruled = described_parts(schema), ruled - {AUTHORS}
        self._listing, self._target, self._library = source, target, library
        self.assumed, self._described = assumed, schema
        self._same_service = same_service
        self.unread = unread
        self._text_ids = text_ids_in(source.records(), library())
        self._shapes = shape_of(source, ruled, self._text_ids), shape_of(target, ruled)
        self.by_kind = references_by_kind(source.records(), self._shapes[0], library())
        forms = {key: reference.form for key, reference in self.by_kind.items()}
        self._known = KnownFields(by_kind=forms, posted=posted, read=read, unique=lambda: self.unique_texts)
        self._links, self._lost = dict[str, list[str]](), dict[str, LeftOut]()
        for listing, shape in zip((source, target), self._shapes, strict=True):
            for name in filter(shape.fields.__contains__, map(beside_links, listing.lists.values())):
                del shape.fields[name]
                self._lost |= {name: LeftOut.BESIDE_LINK} if listing is source else {}
        described = taken_although_filled(self._shapes[0].fields, self._taken)
        asked = {*self._other_choices(), *self._words_within(), *described, *([AUTHORS] if is_publications else ())}
        self._asked_within = asked | objects_of(asked) | self._spelled_otherwise()
        """Paths of objects that are taken apart, because a value within is asked about, or the target has another name for it."""
        self.codes: Mapping[str, DifferingCodes] = {}
        """Path → the codes of other records there that are others in the target, which are asked about."""
        self.type = self._learn()
        leads_to = dict[str, str]()
        if unknown := self.unknown_references:
            leads_to = resources_by_names(self.records(), unknown, read, self._library)
            self.type = self._learn(leads_to=leads_to)
        if asks_all:
            self.type = self._learn(doubted=self._doubted())
        self._take_links_apart(read, leads_to)
        while names := [*plain_fields(self.type, assumed, self.source, self._takes_booleans), *self._unasked()]:
            may_refer = {key for key, ids in self._ids_within(names).items() if asks_all or ids.are_values}
            objects = {key for key in may_refer if objects_in(self.source.fields[key]) is not None}
            self._asked_within |= objects
            self.type = self._learn(may_refer={*self._known.may_refer, *may_refer})
            if not objects:
                break

    def _learn(self, **known: Any) -> ResourceType:
        """The type, with what is known of its fields now."""
        whole, of_target = self._shapes
        self.apart = TakenApart(whole, self.by_kind, self._links, self._asked_within, self.assumed.resource)
        self.source, self.schema = self.apart.shape(whole), self.apart.schema(self._described)
        contradicted_in_source = set[str]()
        if self._same_service and self.assumed.sends_unproved:
            contradicted_in_source = contradicted_fields(self.schema, self.records())
            contradicted_in_source |= contradicted_by_shape(self.schema, fields_to_send(self.source))
            contradicted_in_source -= confirmed_fields(self.schema, self.apart.shape(of_target))
        contradicted = contradicted_fields(self.schema, map(self.apart.record, self._target.records()))
        payload = self.schema.create.fields if self.schema.create else {}
        self.choices = {name: described_choices(field) for name, field in payload.items() if name not in contradicted}
        """Field → the values that the target takes by its description, as far as its own records do not contradict it."""
        self._known = self._known._replace(
            contradicted=contradicted, contradicted_in_source=contradicted_in_source, **known
        )
        learned = learn_from_shapes(
            self.assumed, whole, of_target, self._described, known=self._known, apart=self.apart
        )
        lost = self._lost | dict.fromkeys(sorted(self.apart.unnameable), LeftOut.NOT_SENDABLE)
        record_type = json_api_type([self._target, self._listing]) if ATTRIBUTES in whole.fields else ""
        wrapped_in = learned.wrapped_in or (DATA if record_type and not self._described.create else "")
        return msgspec.structs.replace(
            learned, left_out=learned.left_out | lost, record_type=record_type, wrapped_in=wrapped_in
        )

    @property
    def _taken(self) -> Mapping[str, FieldSchema]:
        """The fields that the target takes of a new record, by its description, with their objects whole."""
        return self._described.create.fields if self._described.create else {}

    def _other_choices(self) -> set[str]:
        """The paths within objects whose values the target does not take."""
        enumerations = [*choices_within(self._taken)]
        return {
            f"{holder}/{member}"
            for record in (self._listing.records() if enumerations else ())
            for holder, member, choices in enumerations
            for entry in objects_at(record, holder)
            for value in several(entry.get(member))
            if text_of(value) and not is_taken(value, choices)
        }

    def _words_within(self) -> Iterator[str]:
        """Yield the path of each enumeration within objects of which records of the target have other words."""
        source, target = self._shapes
        objects = {} if self.assumed.personal else dict(objects_without_ids(source.fields))
        parts = {f"{path}/{member}": PLAIN for path, shape in objects.items() for member in shape.members}
        if not parts or not target.records:
            return
        of_source, of_target = (
            words_in((members_apart(record, objects) for record in listing.records()), parts)
            for listing in (self._listing, self._target)
        )
        for path, words in of_source.items():
            if is_enumeration(path, words) and of_target.get(path, words).keys() - words.keys():
                yield path

    def _spelled_otherwise(self) -> set[str]:
        """The paths of objects that have a member under another spelling in the target, by its description or its records."""
        source, target = self._shapes
        return {*spelled_otherwise(source.fields, self._taken), *spelled_otherwise(source.fields, target.fields)}

    def _doubted(self) -> set[str]:
        """The references by names whose ids say something else: another resource alone has all of them, or the named one has none.

        So is one beside the record's id that is named after its own resource: it may be another number of the record itself, such as that
        of a copy within its book.
        """
        parts = {
            path: part for path, part in self.type.parts.items() if part.refers and not (part.entries or part.kinds)
        }
        ids: dict[str, set[RecordId]] = {path: set() for path in parts}
        for path, entry in entries_at(self.records(), parts):
            if (number := id_of(entry)) is not None and len(ids[path]) < MOST_VALUES:
                ids[path].add(number)
        lacking: dict[str, dict[str, set[RecordId]]] = {path: {} for path in parts}
        for resource, listing in self._library().items() if any(ids.values()) else ():
            for path, known in ids.items():
                lacking[path][resource] = {*known}
            for chunk in listing.ids():
                for path in parts:
                    lacking[path][resource] -= chunk
        doubted = {
            path
            for path, part in parts.items()
            if (absent := lacking[path].get(part.leads_to)) and (absent == ids[path] or not all(lacking[path].values()))
        }
        doubted |= {
            path
            for path, part in parts.items()
            if "/" not in path and part.leads_to == self.type.resource and not is_of_own_kind(path)
        }
        return {key for path in doubted for key in parts[path].keys_of(path)}

    def _take_links_apart(self, read: Library, leads_to: dict[str, str]) -> None:
        """Take the objects of references apart that say something of the link, and those within, which come to light by that."""
        while True:
            links = self._new_links(read)
            self._links |= links
            leads_to |= {f"{key}/id": leads_to[key] for key in links.keys() & leads_to.keys()}
            doubted = {*self._known.doubted} | {f"{key}/id" for key in links.keys() & {*self._known.doubted}}
            self.type = self._learn(leads_to=leads_to, doubted=doubted)
            if not links:
                break

    def _new_links(self, read: Library) -> dict[str, list[str]]:
        """What the objects of references, which are whole so far, say of the link.

        It is lost where the target takes only numbers, or not all are objects; so are times and addresses, those of the other record.
        """
        links = members_of_links(self.records(), self.type, self.source, read)
        as_numbers = {
            key
            for path, part in self.type.parts.items()
            for key in part.keys_of(path)
            if not part.sent_as.startswith("object")
        }
        whole = as_numbers | {key for key in links if objects_in(self.source.fields[key]) is None}
        of_links = {
            key: [member for member in members if is_counter(member) or not is_managed(member)]
            for key, members in links.items()
        }
        self._lost |= {
            f"{key}/{member}": LeftOut.NOT_DESCRIBED if member in of_links[key] else LeftOut.FILLED_BY_SERVICE
            for key, members in links.items()
            for member in members
            if key in whole or member not in of_links[key]
        }
        return {key: members for key, members in of_links.items() if members and key not in whole | self._links.keys()}

    def _unasked(self) -> list[str]:
        """The fields that are left out because they, or objects in which they are, may have numbers of records, which is not asked yet."""
        left_out = {*self.unknown_references} & self.type.left_out.keys()
        asked = self._asked_within | {*self._known.may_refer}
        return [key for key in self.source.fields if key not in asked and left_out & {key, *objects_of([key])}]

    def ask(self, codes: Mapping[str, DifferingCodes]) -> None:
        """Ask what is sent for codes of records that are others in the target. Of persons, or of very many, the field is left out (I10)."""
        self.codes = {
            path: differing
            for path, differing in codes.items()
            if len(differing.in_target) <= MOST_ASKED
            and not self.type.personal
            and PERSONAL.isdisjoint(owner for owner, _field in differing.owners)
        }
        of_keys = {path for path in codes if path.endswith(f"/{ANY_KEY}")}
        self._asked_within |= objects_of(self.codes.keys() - of_keys)
        learned, values = self._learn(), {path: differing.in_target for path, differing in self.codes.items()}
        fields = {name: field.asking(values, name) for name, field in learned.fields.items()}
        asked = {path for name, field in fields.items() for path, part in field.parts(name) if part.values}
        unasked = codes.keys() - asked
        around = {name for name in fields if any(f"{path}/".startswith(f"{name}/") for path in unasked)}
        within = {name for name in fields if any(name.startswith(path.removesuffix(ANY_KEY)) for path in of_keys)}
        lost = around | within  # no line says which key is sent
        left_out = {key: LeftOut.UNKNOWN_REFERENCE for name in lost for key in fields.pop(name).keys_sent(name)}
        self.type = msgspec.structs.replace(learned, fields=fields, left_out=learned.left_out | left_out)

    @cached_property
    def unique_texts(self) -> set[str]:
        """The paths of the texts that tell records from each other, in words; none of persons, who are known by their e-mail."""
        return set() if self.assumed.personal else unique_texts(self._listing.records(), self._target.records())

    def texts(self) -> dict[str, set[str]]:
        """Path of what may be nothing but codes, as values or as keys of objects → the different ones; of persons no keys.

        What names the record itself is no code of another, nor is what the service documents of users.
        """
        keys = {} if self.type.personal else keys_of_objects(self._listing.records())
        own = {first for first, *_others in self.type.keys} | (
            {*self.assumed.fields} if self.assumed.documented else set()
        )
        texts = texts_of(self.type, self.records())
        return keys | {path: known for path, known in texts.items() if path not in own}

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
        return fields_with_ids(
            self.records(),
            names,
            self._library(),
            text_ids=self._text_ids,
            asks_quantities=asks_quantities,
            are_known=not self.unread,
        )

    def choices_of(self, path: str) -> Sequence[str]:
        """What the target takes in a field: by its description, else the words of its records, where it has others than the source."""
        return self.choices.get(path, ()) or self._other_words.get(path, ())

    @property
    def asked(self) -> ResourceType:
        """The type with a question for each value that the target does not take, or has no word for."""
        values = self._other_values | {path: words for path, (words, _taken) in self.other_kinds.items()}
        fields = {name: field.asking(values, name) for name, field in self.type.fields.items()}
        return msgspec.structs.replace(self.type, fields=fields)

    @cached_property
    def other_kinds(self) -> dict[str, tuple[list[str], list[str]]]:
        """Reference → the words beside its ids of which the target takes, or its records have, none; and those of the target."""
        kinds = {} if self.type.personal else {path: part.kind for path, part in self.type.parts.items() if part.kind}
        parts = dict.fromkeys(kinds.values(), PLAIN)
        in_source = words_in(self.records(), parts)
        in_target = words_in(map(self.apart.record, self._target.records()), parts) if in_source else {}
        kinds_to_ask = dict[str, tuple[list[str], list[str]]]()
        for path, kind in kinds.items():
            words, of_target = {*in_source.get(kind, ())}, {*in_target.get(kind, ())}
            taken = {*self.choices.get(kind, ())} or (of_target if words.isdisjoint(of_target) else words)
            if taken and words - taken:
                kinds_to_ask[path] = sorted(words - taken), sorted(taken)
        return kinds_to_ask

    @property
    def _other_values(self) -> dict[str, list[str]]:
        """Field → its values that are not among those which the target takes; none of people (I10)."""
        parts = {} if self.type.personal else {path: part for path, part in self.type.parts.items() if not part.refers}
        chosen = {path: choices for path in parts if (choices := self.choices_of(path))}
        values_to_ask: dict[str, dict[str, None]] = {path: {} for path in chosen}
        for path, entry in entries_at(self.records(), {path: parts[path] for path in chosen}):
            text = text_of(entry)
            if (
                text
                and not is_taken(entry, chosen[path])
                and text.isprintable()
                and len(values_to_ask[path]) < MOST_ASKED
            ):
                values_to_ask[path][text] = None
        return {path: [*values] for path, values in values_to_ask.items() if values}

    @cached_property
    def _other_words(self) -> dict[str, Sequence[str]]:
        parts = {} if self.type.personal else self.type.parts
        takes_booleans = self._takes_booleans
        words_of_source = words_in(self.records(), parts, takes_booleans)
        in_source = {
            path: words
            for path, words in words_of_source.items()
            if path in takes_booleans or (is_enumeration(path, words) and not names_doer(path.rpartition("/")[2]))
        }
        in_target = words_in(map(self.apart.record, self._target.records()), parts) if in_source else {}
        return {
            path: BOOLEANS if path in takes_booleans else sorted(in_target[path])
            for path, words in in_source.items()
            if path in takes_booleans or in_target.get(path, words).keys() - words.keys()
        }

    @property
    def _takes_booleans(self) -> set[str]:
        """The paths where the target takes nothing but booleans, by its description, and its records do not contradict that."""
        described = self.schema.create.fields if self.schema.create else {}
        of_target = self.apart.shape(self._shapes[1]).fields
        return {path for path, field in described.items() if described_types(field, of_target.get(path)) == BOOLEAN}

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the records of the source, with the members of objects as fields of their own."""
        return map(self.apart.record, self._listing.records())

    def shape(self, key: str) -> FieldShape | None:
        """The shape of a field of the source, which may be a list of objects."""
        return self.source.fields.get(key) or self.apart.lists.get(key)

    @cached_property
    def examples(self) -> dict[str, str]:
        """Field → the first value that records have there, as JSON, without what may be personal (I10): authors are persons."""
        examples = dict[str, str]()
        keys = (self.source.fields.keys() | self.apart.lists.keys()) - {AUTHORS}
        for record in () if self.type.personal else self._listing.records():
            for key in keys - examples.keys():
                field = self.shape(key)
                if not is_empty(value := value_at(record, key)) and field is not None and not field.is_map:
                    examples[key] = compact_json(_without_texts(value))[:LONGEST_EXAMPLE]
            if len(examples) == len(keys):
                break
        return examples


def json_api_type(listings: Iterable[RecordListing]) -> str:
    """The `type` of the first record of these listings that has the form of JSON:API; empty if none has."""
    records = (record for listing in listings for record in islice(listing.records(), 1))
    types = (record.get("type") for record in records if isinstance(record.get(ATTRIBUTES), dict))
    return next((name for name in types if isinstance(name, str)), "")


LONGEST_EXAMPLE = 60
"""Characters of an example."""


_CODE = re.compile(r"\d{1,4}|\d{4}-\d\d.{0,14}|(?=\D*\d)(?=.*[A-Z])[A-Z\d./:-]{1,24}")
"""Matches short numbers, dates and codes with letters, such as a barcode; no number as long as that of a telephone."""


def _without_texts(value: Any) -> Any:
    """A value whose texts are left out, unless they are codes or name a resource; one entry of a list."""
    if isinstance(value, dict):
        return {"…" if is_value(name) else name: _without_texts(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_without_texts(entry) for entry in value[:1]]
    return value if not isinstance(value, str) or _CODE.fullmatch(value) or named_kind(value) else "…"


def plain_fields(
    learned: ResourceType, assumed: ResourceType, source: RecordShape, booleans: Container[str]
) -> list[str]:
    """The fields of the source that are sent as they stand although nothing documents them, besides choices and names of records.

    Of users, only texts and lists of them are documented. `booleans`: the paths where the target takes these.
    """
    chosen = {name for name, rule in learned.takes.items() if rule.choices}
    known = {*map(in_words, assumed.fields if assumed.documented else assumed.key_fields)}
    if assumed.resource == USERS:
        known -= {in_words(key) for key, field in source.fields.items() if objects_in(field) is not None}
    covered = {*(path for path in learned.parts if in_words(path) in known), *learned.references, *chosen}
    return [
        key
        for path, part in learned.parts.items()
        if not (path in covered or path in booleans) and not part.refers and not part.entries
        for key in part.keys_of(path)
    ]


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

FEWEST_ALIKE = 3
"""Ids of a field from which it is no chance that other records have these numbers and refer to them."""


def resources_by_names(
    records: Iterable[Mapping[str, Any]], keys: Iterable[str], listings: Library, library: Callable[[], Library]
) -> dict[str, str]:
    """Field → the one resource to which it refers, where its objects have a name beside the id, which that record has, too.

    Most of them no other record of that resource has, as it may have a status; and no other resource is numbered like it. `records`: those
    with the fields `keys`; `listings`: the resources to which they may refer; `library`: all those of the source.
    """
    texts_by_id = _texts_beside_ids(records, keys)
    all_texts = {text for by_id in texts_by_id.values() for texts in by_id.values() for text in texts}
    fits: dict[str, list[str]] = {key: [] for key in texts_by_id}
    for resource, listing in listings.items() if all_texts else ():
        owners = dict[str, RecordId | None]()
        named: dict[str, dict[RecordId, set[str]]] = {key: {} for key in texts_by_id}
        for number, record in numbered(listing.records()):
            texts = all_texts.intersection(value for value in record.values() if isinstance(value, str))
            owners.update({text: None if text in owners else number for text in texts})
            for key, by_id in texts_by_id.items():
                if number in by_id:
                    named[key][number] = texts & by_id[number]
        for key, known in named.items():
            alone = sum(any(owners[text] == number for text in texts) for number, texts in known.items())
            if all(known.values()) and alone * 2 > len(known):
                fits[key].append(resource)
    leads_to = {key: resources[0] for key, resources in fits.items() if len(resources) == 1}
    ids = {key: {*texts_by_id[key]} for key in leads_to}
    alike = _numbered_alike(ids, leads_to, library()) if leads_to else set[str]()
    return {key: resource for key, resource in leads_to.items() if key not in alike}


def _numbered_alike(
    ids: Mapping[str, AbstractSet[RecordId]], leads_to: Mapping[str, str], listings: Mapping[str, RecordListing]
) -> set[str]:
    """The fields whose ids may be those of records that have the numbers of the named ones and refer to them, as copies may to books.

    `ids`: those of each field; `leads_to`: the resource to which each leads by its names.
    """
    alike = set[str]()
    for resource, listing in listings.items():
        keys = [key for key, named in leads_to.items() if named != resource and len(ids[key]) >= FEWEST_ALIKE]
        asked = {number for key in keys for number in ids[key]}
        equal, referred, most = dict[str, set[RecordId]](), dict[str, set[RecordId]](), Counter[str]()
        for number, record in numbered(listing.records() if keys else ()):
            for name in record.keys() - {"id", *ids}:
                if (reference := id_of(record[name])) is None or is_quantity(name):
                    continue
                most[name] += 1 if reference == number else -1
                if reference == number and number in asked:
                    equal.setdefault(name, set()).add(number)
                if len(sample := referred.setdefault(name, set())) < PAIRS:
                    sample.add(reference)
        for key in keys:
            names = [name for name in equal if most[name] > 0 and equal[name] >= ids[key]]
            alike |= {key for name in names if _has_all(listings[leads_to[key]], referred[name])}
    return alike


def _has_all(listing: RecordListing, numbers: AbstractSet[RecordId]) -> bool:
    """Whether all of these are ids of records of a listing."""
    lacking = {*numbers}
    for chunk in listing.ids():
        lacking -= chunk
    return not lacking


def _texts_beside_ids(records: Iterable[Mapping[str, Any]], keys: Iterable[str]) -> dict[str, dict[RecordId, set[str]]]:
    """Field → id in its objects → the texts beside it."""
    texts_by_id: dict[str, dict[RecordId, set[str]]] = {key: {} for key in keys}
    for record in records:
        for key, by_id in texts_by_id.items():
            for entry in several(record.get(key)) if len(by_id) < PAIRS else ():
                members = entry if isinstance(entry, dict) else {}
                texts = {text for name, text in members.items() if name != "id" and isinstance(text, str) and text}
                if texts and (number := id_of(entry)) is not None:
                    by_id.setdefault(number, set()).update(texts)
    return texts_by_id


MOST_ADDITIONAL = 100
"""Additional fields of publications that a plan looks at; the service documents a dozen."""


_FIELD_NAME = re.compile(r"[\w:@$ -]{1,60}")


def additional_names(names: Iterable[str], publications: ResourceType) -> list[str]:
    """Those of the names of a source's fields of which publications may have more than the documented ones, in alphabetical order.

    Of names that differ only in case, which a table cannot tell apart, the first counts. Authors are among them where they have parts,
    such as `authors[].orcid`.
    """
    names, additional = [*names], dict[str, str]()
    for name in names:
        is_known = name in publications.ruled or (is_managed(name) and not is_counter(name))
        if not is_known and _FIELD_NAME.fullmatch(name) and len(additional) < MOST_ADDITIONAL:
            additional.setdefault(name.lower(), name)
    return sorted({*additional.values(), *(AUTHORS for name in names if name.startswith(f"{AUTHORS}["))})
