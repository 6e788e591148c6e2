"""Publications as a resource: documented fields and identifiers, fields that a plan has learned, and files."""

# ruff: noqa: D102  the class that it extends says what each is

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Any, Self

import msgspec

from pipelines.migration.model.comparable import CONTENT, Form
from pipelines.migration.model.field_mapping import FieldMapping, plain
from pipelines.migration.model.resource_types import (
    PUBLICATIONS,
    USERS,
    ResourceType,
    Stage,
    content_digest,
    without_signed_addresses,
)
from pipelines.records.forms import NAMED, AuthorParts, form_of
from pipelines.records.identifiers.kinds import Kinds
from pipelines.records.identifiers.verdicts import GOOD
from pipelines.records.left_out import DEPRECATED_FIELD, LeftOut
from pipelines.records.matching import (
    comparable,
    differing,
    fingerprint,
    identifying_keys,
    same_title,
    with_plain_blanks,
)
from pipelines.records.paths import objects_of, within
from pipelines.records.residue import PICTURES, without_addresses
from pipelines.records.tables.publication_fields import (
    AUTHOR_KEYS,
    AUTHORS,
    DATE_FIELDS,
    IDENTIFIER_LIST,
    REFERENCES,
    WRITTEN,
    FieldType,
    fields_of,
)
from pipelines.records.values import compact_json
from pipelines.shapes.model import PayloadSchema

IDENTIFIER = "identifier"
STAGES = (
    Stage(IDENTIFIER, IDENTIFIER),
    Stage(CONTENT, CONTENT, gives_way=True),
    Stage("fingerprint", "fingerprint", gives_way=True),
)
_CONTENT = [name for name in sorted(WRITTEN) if name not in REFERENCES]
_FILES = frozenset({"cover", "assets"})
_LISTS = fields_of(FieldType.LIST)
_NOTHING_DEMANDED = PayloadSchema()
_DOCUMENTED = {
    **plain(*WRITTEN),
    **dict.fromkeys((IDENTIFIER_LIST, "categories"), FieldMapping(any_order=True)),
    AUTHORS: FieldMapping(entries=plain(*sorted(AUTHOR_KEYS))),  # their order counts
    "contributor": FieldMapping(leads_to=USERS, sent_as="object"),
    "organization": FieldMapping(leads_to="organizations", sent_as="object"),
}
_LACKING = (LeftOut.NOT_DESCRIBED, LeftOut.NOT_SHOWN)
_OTHER_RULES = PICTURES | {"files", DEPRECATED_FIELD}


class PublicationType(ResourceType, frozen=True):
    """How publications are moved. Made by `publication_type`; a plan stores what it is made from."""

    additional: tuple[str, ...] = ()
    """The fields that the service does not document."""
    kinds: Kinds = Kinds()
    verdicts: AbstractSet[str] = GOOD
    """Verdicts of the identifiers that are sent."""
    first_day: bool = False
    """A date that is only a year or a month is sent as its first day."""
    nothing: dict[str, Any] = msgspec.field(default_factory=dict)
    """Field that the target demands → what is sent of a record that has nothing there: null where it may be null, or an empty list."""

    @property
    def has_files(self) -> bool:
        return True

    @property
    def stages(self) -> tuple[Stage, ...]:
        return STAGES

    @property
    def key_fields(self) -> frozenset[str]:
        return frozenset()

    @property
    def dates(self) -> tuple[str, ...]:
        return DATE_FIELDS

    @property
    def documented(self) -> bool:
        return True

    @property
    def ruled(self) -> frozenset[str]:
        return self.kinds.record_keys | _OTHER_RULES

    @property
    def learned(self) -> tuple[str, ...]:
        return self.additional

    @property
    def sends_unproved(self) -> bool:
        """They are documented, so that a field that is not is sent only where the target's description or its records have it."""
        return False

    @property
    def undocumented(self) -> frozenset[str]:
        return frozenset(self.additional)

    @property
    def filled(self) -> frozenset[str]:
        return frozenset({*REFERENCES, *self.additional})

    @property
    def needs_references(self) -> bool:
        return False

    @property
    def sent_without_references(self) -> frozenset[str]:
        return frozenset({AUTHORS} & self.references.keys())

    @property
    def of_target(self) -> Self:
        return msgspec.structs.replace(super().of_target, first_day=False, nothing={})

    @cached_property
    def _taken_apart(self) -> tuple[set[str], frozenset[str]]:
        """The objects whose members are fields; these and what else has rules of its own, instead of those of the documented fields."""
        keys = [key for name in self.additional for key in self.keys_of(name)]
        lists = {key for name in self.additional if self.fields[name].entries for key in self.keys_of(name)}
        objects = (objects_of([*keys, *self.left_out]) | lists) - {AUTHORS}
        return objects, _FILES.union(keys, objects)

    @cached_property
    def _author(self) -> ResourceType:
        """What authors have besides the documented members, as records of their own."""
        parts = {name: part for name, part in self.fields[AUTHORS].entries.items() if name not in AUTHOR_KEYS}
        left_out, takes = within(AUTHORS, self.left_out), within(AUTHORS, self.takes)
        return ResourceType("", parts, (), takes=takes, left_out=left_out)

    def _parts_of_author(self, rest: dict[str, Any]) -> AuthorParts:
        form, is_known = self._author.form(rest), bool(self._author.fields or self._author.left_out)
        whole = self.left_out.get(AUTHORS, LeftOut.NOT_MAPPED if is_known else "")
        why = {path: whole if code == LeftOut.NOT_MAPPED else code for path, code in form.why.items()}
        return AuthorParts(form.values, form.unsent, why)

    def _without_references_of_authors(self, compared: Mapping[str, str]) -> Mapping[str, str]:
        """Compared fields without the records to which authors lead, whose numbers are valid in their own library only."""
        if AUTHORS not in self.references or AUTHORS not in compared:
            return compared
        authors = self.fields[AUTHORS].with_ids(msgspec.json.decode(compared[AUTHORS]), lambda *_: None)
        return {**compared, AUTHORS: compact_json(authors)}

    def form(self, record: Mapping[str, Any]) -> Form:
        objects, apart = self._taken_apart
        form = form_of(
            {name: value for name, value in record.items() if name not in apart},
            self.kinds,
            self.verdicts,
            first_day=self.first_day,
            parts_of_author=self._parts_of_author,
        )
        values, why = self._sent_and_left_out(record)
        unsent = form.unsent | {name: self._read(record, name) for name in why}
        members = [part for part in self._unsent(record) if part[0].partition("/")[0] in objects] if objects else ()
        for path, value, reason in (*self._filled_within(record), *self._unsent_links(record), *members):
            unsent[path], why[path] = value, reason
        for name in form.unsent.keys() & self.left_out.keys():
            if form.why[name] != LeftOut.UNKNOWN_IDENTIFIER or self.left_out[name] not in _LACKING:
                why[name] = self.left_out[name]
        return Form(
            form.fields | values,
            without_signed_addresses(unsent),
            form.why | why,
            {name: value for name, value in self.nothing.items() if name not in form.fields}
            | self.empty_values(record),
        )

    def values(self, record: Mapping[str, Any]) -> dict[str, Any]:
        return self.form(record).values

    def files(self, record: Mapping[str, Any]) -> str | None:
        cover, assets = record.get("cover"), record.get("assets")
        if cover is None and assets == []:
            return None
        return compact_json(without_addresses({"id": record.get("id"), "cover": cover, "assets": assets}))

    def match_keys(self, values: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        for kind, value in identifying_keys(values, self.kinds):
            yield IDENTIFIER, kind, value
        if (text := fingerprint(values)) is not None:
            yield "fingerprint", "fingerprint", text

    def compared(self, values: Mapping[str, Any]) -> dict[str, str]:
        learned = {name: values[name] for name in self.additional if name in values}
        return comparable(values, self.kinds) | super().compared(learned)

    def content(self, compared: Mapping[str, str]) -> str | None:
        return content_digest(self._without_references_of_authors(compared), _CONTENT)

    def why_missing(self, name: str) -> LeftOut:
        return NAMED.get(name, LeftOut.NO_RECORD)

    def is_alike(self, sent: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
        """They set a publication kind where none was sent, and any additional field; they may drop an additional field that was sent."""
        expected, actual = (
            self._without_references_of_authors(self.compared(with_plain_blanks(self.values(record))))
            for record in (sent, made)
        )
        for name in differing(expected, actual):
            if name not in self.additional:
                if name != "publishable_type" or name in expected:
                    return False
            elif name in expected and name in actual:
                return False
        return True

    def may_be(self, sent: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
        """It has an identifier or the title of what was sent."""
        expected, actual = form_of(sent, self.kinds).fields, form_of(made, self.kinds).fields
        title = fingerprint(expected)
        return (
            not {*identifying_keys(expected, self.kinds)}.isdisjoint(identifying_keys(actual, self.kinds))
            or (title is not None and fingerprint(actual) == title)
            or same_title(expected, actual)
        )

    def title(self, values: Mapping[str, Any]) -> str | None:
        return values.get("title")


def publication_type(
    kinds: Kinds,
    sent: Collection[str] = GOOD,
    *,
    first_day: bool = False,
    payload: PayloadSchema = _NOTHING_DEMANDED,
    learned: ResourceType | None = None,
) -> PublicationType:
    """How publications are moved. `learned`: the fields that the service does not document, and which are left out.

    `payload`: what the target's description says of a new one.
    """
    learned = learned or ResourceType(PUBLICATIONS, {}, ())
    demanded = [name for name in WRITTEN if name in payload.required]
    nullable = [name for name in demanded if name in payload.fields and "null" in payload.fields[name].types]
    nothing = dict.fromkeys(nullable) | {name: [] for name in demanded if name in _LISTS}
    fields = _DOCUMENTED | learned.fields
    if AUTHORS in learned.fields:
        fields[AUTHORS] = FieldMapping(entries=_DOCUMENTED[AUTHORS].entries | learned.fields[AUTHORS].entries)
    return PublicationType(
        PUBLICATIONS,
        fields=fields,
        keys=(),
        takes=learned.takes,
        left_out=learned.left_out,
        presign=learned.presign,
        required=(*learned.required, *demanded),
        additional=tuple(name for name in learned.fields if name != AUTHORS),
        nothing=nothing,
        kinds=kinds,
        verdicts=frozenset(sent),
        first_day=first_day,
    )
