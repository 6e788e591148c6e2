"""Publications of both versions in the form that version 3 accepts.

A record becomes the fields that `POST` and `PATCH /publications` send, and a list of what they do not. Files are uploaded beside them
(records/files.py). Total: any JSON object has a form. Every key is written, ignored by name, or listed in `unsent` (I6).

These are ignored by name: ids that the service assigns (of the record, its categories, its assets and their stored files), names of
contributors and organizations, which belong to their own records, and addresses, which change in every response.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pipelines.records.advice import code_of
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.typed_identifiers import read_fields
from pipelines.records.identifiers.verdicts import GOOD, UNRECOGNISED, Identifier
from pipelines.records.left_out import LeftOut, why_unknown
from pipelines.records.residue import ADDRESSES, keep_nested, without_addresses
from pipelines.records.tables.publication_fields import (
    ASSET_KEYS,
    AUTHOR_KEYS,
    CATEGORY_KEYS,
    DATE_FIELDS,
    IDENTIFIER_KEYS,
    IDENTIFIER_LIST,
    METADATA_KEYS,
    REFERENCE_KEYS,
    REFERENCES,
    STORED_KEYS,
    TEXT_FIELDS,
)
from pipelines.records.values import Precision, partial_date, valid_text, whole_number

PERSON = "person"
AUTHOR_TYPES = (PERSON, "corporate")
"""The types of authors that the service documents (service.md#publications)."""

NAMED = {"contributor": LeftOut.NO_USER, "organization": LeftOut.NO_ORGANIZATION}
"""Reference → why it is not sent where the record that it names is unknown."""

Json = dict[str, Any]
_NO_REASONS: Mapping[str, str] = {}


class AuthorParts(NamedTuple):
    """What an author has besides the documented members."""

    values: Json
    """What is sent of it."""
    unsent: Json
    why: Mapping[str, str]
    """Key of `unsent` → the code of the reason; without one, the rules for unknown parts say it."""


def _none_sent(rest: Json) -> AuthorParts:
    return AuthorParts({}, rest, {})


@dataclass(slots=True)
class PublicationForm:
    """A publication in version 3's form."""

    fields: Json = field(default_factory=dict)
    """Names of `WRITTEN` and the JSON values to send; empty fields are absent.

    Lists are in the record's own order.
    """
    unsent: Json = field(default_factory=dict)
    """Path in the record → value that version 3 will not receive: no rule maps it, or the service does not accept it.

    Write it with `residue_json` only, which leaves signatures out (I10).
    """
    why: dict[str, str] = field(default_factory=dict)
    """The same paths → the code of the reason: a `LeftOut`, or the rule that an identifier breaks."""

    def leave(self, path: str, value: object, why: str) -> None:
        """Add a value to `unsent`."""
        self.why[keep_nested(self.unsent, path, value)] = why


def form_of(
    record: Mapping[str, Any],
    kinds: Kinds = STANDARD_KINDS,
    sent: AbstractSet[str] = GOOD,
    *,
    first_day: bool = False,
    parts_of_author: Callable[[Json], AuthorParts] = _none_sent,
) -> PublicationForm:
    """The form of a record of either version. Never raises on data.

    `sent`: verdicts of the flat identifiers to send. `first_day`: a date that is only a year or a month is sent as its first day.
    `parts_of_author`: reads what an author has besides the documented members.
    """
    form = PublicationForm()
    _texts(record, form)
    _dates(record, form, first_day=first_day)
    _authors(record, form, parts_of_author)
    _identifiers(record, form, kinds, sent)
    _categories(record, form)
    _references(record, form)
    for key, value in record.items():
        if key not in kinds.record_keys and key not in ADDRESSES and (clean := without_addresses(value)) is not None:
            form.leave(key, clean, why_unknown(key, clean))
    return form


def precision_of(name: str) -> str:
    """The path in `unsent` of a date that is sent as its first day: of it, version 3 does not receive that it is a year or a month."""
    return f"{name} (precision)"


def _texts(record: Mapping[str, Any], form: PublicationForm) -> None:
    for key in TEXT_FIELDS:
        value = record.get(key)
        if type(value) is str and value:
            form.fields[key] = valid_text(value)
        elif value not in (None, ""):
            form.leave(key, without_addresses(value), LeftOut.OTHER_FORM)


def _dates(record: Mapping[str, Any], form: PublicationForm, *, first_day: bool) -> None:
    """The service accepts dates as `YYYY-MM-DD` only (service.md#publications); another order with one reading is sent like that."""
    for key in DATE_FIELDS:
        value = record.get(key)
        parsed = partial_date(value) if type(value) is str else None
        is_day = parsed is not None and parsed.precision is Precision.DAY
        if parsed is not None and (is_day or first_day):
            form.fields[key] = parsed.first.isoformat()
            if not is_day:
                form.leave(precision_of(key), value, LeftOut.FIRST_DAY)
        elif value not in (None, ""):
            why = LeftOut.NO_DAY if parsed is None else LeftOut.PART_OF_DATE
            form.leave(key, without_addresses(value), why)


def _authors(record: Mapping[str, Any], form: PublicationForm, parts_of_author: Callable[[Json], AuthorParts]) -> None:
    """An author has a name and a type (service.md#publications). Without a known type, the author counts as a person."""
    authors = []
    for number, entry in enumerate(_items(record, "authors", form)):
        if (author := _named(entry)) is None:
            form.leave(f"authors[{number}]", without_addresses(entry), LeftOut.OTHER_FORM)
            continue
        name, kind = author["name"], author.get("type")
        is_known = type(kind) is str and kind in AUTHOR_TYPES
        rest = {key: value for key, value in author.items() if key not in AUTHOR_KEYS}
        parts = parts_of_author(rest) if rest else _none_sent(rest)
        authors.append({"name": valid_text(name), "type": kind if is_known else PERSON} | parts.values)
        _unknown(parts.unsent, frozenset(), f"authors[{number}]", form, parts.why)
        if not is_known and kind is not None:
            form.leave(f"authors[{number}].type", without_addresses(kind), LeftOut.UNKNOWN_PART)
    if authors:
        form.fields["authors"] = authors


def _named(entry: Any) -> Json | None:
    """An entry with a name, also where the entry is the name alone; None without one."""
    named = {"name": entry} if type(entry) is str else entry
    return named if type(named) is dict and type(named.get("name")) is str and named["name"] else None


def _categories(record: Mapping[str, Any], form: PublicationForm) -> None:
    """Categories are sent by name, each once: ids count within one library only (service.md#references)."""
    names: dict[str, None] = {}
    for number, entry in enumerate(_items(record, "categories", form)):
        if (category := _named(entry)) is None:
            why = LeftOut.OTHER_FORM if type(entry) is str else LeftOut.NO_CATEGORY
            form.leave(f"categories[{number}]", without_addresses(entry), why)
            continue
        names[valid_text(category["name"])] = None
        _unknown(category, CATEGORY_KEYS, f"categories[{number}]", form)
    if names:
        form.fields["categories"] = [{"name": name} for name in names]


def _references(record: Mapping[str, Any], form: PublicationForm) -> None:
    """References are sent by id, which counts within its own library only (service.md#references)."""
    for key in REFERENCES:
        value = record.get(key)
        if value is None:
            continue
        reference_id = whole_number(value.get("id")) if type(value) is dict else None
        if reference_id is None:
            form.leave(key, without_addresses(value), NAMED[key])
            continue
        form.fields[key] = {"id": reference_id}
        _unknown(value, REFERENCE_KEYS, key, form)


def _identifiers(record: Mapping[str, Any], form: PublicationForm, kinds: Kinds, sent: AbstractSet[str]) -> None:
    """Version 3 takes a list of types and values where version 2 has flat fields (service.md#identifiers).

    Entries of version 3's list are sent unchanged. Flat fields are sent as canonical values, if their verdict is in `sent`.
    """
    chosen: dict[tuple[str, str], None] = {}
    identifiers: list[Identifier] = []
    read_fields(record, identifiers, kinds)
    for identifier in identifiers:
        is_blank = identifier.verdict == UNRECOGNISED and not identifier.value.strip()
        if identifier.verdict in sent and not is_blank:
            chosen[identifier.type, identifier.value] = None
        elif form.unsent.get(identifier.source_field) != identifier.raw:
            form.leave(identifier.source_field, identifier.raw, code_of(identifier.rule))
    entries = []
    for number, entry in enumerate(_items(record, IDENTIFIER_LIST, form)):
        where = f"{IDENTIFIER_LIST}[{number}]"
        kind, value = (entry.get("type"), entry.get("value")) if type(entry) is dict else (None, None)
        if type(kind) is not str or type(value) is not str or not kind or not value:
            form.leave(where, without_addresses(entry), LeftOut.OTHER_FORM)
            continue
        entries.append({"type": valid_text(kind), "value": valid_text(value)})
        _unknown(entry, IDENTIFIER_KEYS, where, form)
        for listed in kinds.read(entries[-1]["type"], entries[-1]["value"]) if chosen else ():
            chosen.pop((listed.type, listed.value), None)
    entries = [*({"type": kind, "value": value} for kind, value in chosen), *entries]
    if entries:
        form.fields[IDENTIFIER_LIST] = entries


def add_unsent_files(record: Mapping[str, Any], form: PublicationForm) -> None:
    """Add to `unsent` the parts of cover and assets that version 3 will not receive: path → value."""
    cover, assets = record.get("cover"), record.get("assets")
    if cover is not None:
        _stored(cover, "cover", form)
    if type(assets) is not list:
        if assets is not None:
            form.leave("assets", without_addresses(assets), LeftOut.OTHER_FORM)
        return
    for number, asset in enumerate(assets):
        where = f"assets[{number}]"
        if type(asset) is dict:
            _unknown(asset, ASSET_KEYS, where, form)
            if asset.get("file") is not None:
                _stored(asset["file"], f"{where}.file", form)
        else:
            form.leave(where, without_addresses(asset), LeftOut.OTHER_FORM)


def _stored(file: Any, where: str, form: PublicationForm) -> None:
    """Add the members of a stored file other than `{id, storage, metadata}`."""
    if type(file) is not dict:
        value = "(address)" if type(file) is str and "://" in file else without_addresses(file)
        form.leave(where, value, LeftOut.OTHER_FORM)
        return
    _unknown(file, STORED_KEYS, where, form)
    metadata = file.get("metadata")
    if type(metadata) is dict:
        _unknown(metadata, METADATA_KEYS, f"{where}.metadata", form)
    elif metadata is not None:
        form.leave(f"{where}.metadata", without_addresses(metadata), LeftOut.OTHER_FORM)


def _unknown(
    entry: Json,
    known_keys: AbstractSet[str],
    where: str,
    form: PublicationForm,
    reasons: Mapping[str, str] = _NO_REASONS,
) -> None:
    """Add the members of an object other than the known ones. `reasons`: member → why it is not sent, where that is known."""
    if not entry.keys() <= known_keys:
        for key, value in without_addresses(entry).items():
            if key not in known_keys:
                form.leave(f"{where}.{key}", value, reasons.get(key) or why_unknown(f"{where}.{key}", value))


def _items(record: Mapping[str, Any], key: str, form: PublicationForm) -> list[Any]:
    value = record.get(key)
    if type(value) is list:
        return value
    if value not in (None, ""):
        form.leave(key, without_addresses(value), LeftOut.OTHER_FORM)
    return []
