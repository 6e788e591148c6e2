"""Publications in the form in which a migration compares them: each field as JSON text, copied from the record's JSON where that is plain.

The results are those of `forms.form_of`, `matching.comparable`, `matching.fingerprint` and `matching.identifying_keys`, in a fraction of
the time: in a million records, few members must be decoded and encoded again. Members that are not plain go through those functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache, partial
from typing import Any, NamedTuple

import msgspec

from pipelines.publication_fields import DATE_FIELDS, IDENTIFIER_LIST, REFERENCES, TEXT_FIELDS
from pipelines.records.additional_fields import ANY_VALUE
from pipelines.records.forms import form_of
from pipelines.records.identifiers.kinds import Kinds
from pipelines.records.identifiers.typed_identifiers import count_left_out, read_entry
from pipelines.records.identifiers.verdicts import VALID, Identifier
from pipelines.records.matching import BOOK, comparable, fingerprint, fingerprint_of, identifying_keys, keys_of
from pipelines.records.residue import ADDRESSES, residue_json
from pipelines.records.values import NOT_JSON, compact_json, day, decode_json, decode_record, valid_text, whole_number

SENT_OTHERWISE = (IDENTIFIER_LIST, "categories")
"""Fields that are compared as sets, but sent in the order of the record."""

LONGEST_REMEMBERED = 1000
"""Longest member, in bytes, whose result is cached, because many records have the same one."""

_REPEATED = ("categories", *REFERENCES)
_FILES = ("cover", "assets")

_BOOK = compact_json(BOOK)

_Members = dict[str, msgspec.Raw]
_RAW = msgspec.json.Decoder(_Members).decode
_ABSENT = msgspec.Raw(b"null")
_NULL, _EMPTY, _NO_MEMBERS = "null", '""', "[]"
_NOTHING = {
    **dict.fromkeys(DATE_FIELDS, (_NULL, _EMPTY)),
    "authors": (_NULL, _EMPTY, _NO_MEMBERS),
    "categories": (_NULL, _EMPTY, _NO_MEMBERS),
    IDENTIFIER_LIST: (_NULL, _EMPTY, _NO_MEMBERS),
    "assets": (_NULL, _NO_MEMBERS),
    **dict.fromkeys(REFERENCES, (_NULL,)),
}
"""Member → its JSON if it is empty; any other value is sent or reported."""
_AUTHOR = r'\{"name":"[^"\\]+","type":"(?:person|corporate)"\}'
_AUTHORS = re.compile(rf'\[(?=\{{"name":"([^"\\]+)"){_AUTHOR}(?:,{_AUTHOR})*\]')
_ENTRY = re.compile(r'\{"type":"([^"\\]+)","value":"([^"\\]+)"\}')
_ENTRIES = re.compile(rf"\[{_ENTRY.pattern}(?:,{_ENTRY.pattern})*\]")
_URL = 'url":"'
"""The end of the name of an address, and the beginning of its value."""
_VALUE = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"')
_BEFORE_ADDRESS = tuple(f'"{name.removesuffix("url")}' for name in ADDRESSES)
_DIGITS = re.compile(r"[1-9][0-9]{0,17}")
_SCALAR = re.compile(r'"[^"\\:]+"|-?[1-9][0-9]{0,17}|0|true|false')
"""JSON of a value that is sent as it stands; a text with a colon may have a signed address."""

_QUOTES = 2
"""Length of an empty JSON string."""

_new = tuple.__new__


class CanonicalPublication(NamedTuple):
    """The parts of a publication that are compared and sent."""

    id: int
    fingerprint: str | None
    compared: Mapping[str, str]
    """Field → JSON text, the result of `matching.comparable`."""
    sent: Mapping[str, str]
    """Field of `SENT_OTHERWISE` → JSON text for POST."""
    keys: Sequence[tuple[str, str]]
    """Type and value of each identifier that names this publication only."""
    files: str | None
    """JSON object of id, cover and assets as received, without addresses (I10); None if there are no files."""
    unsent: str | None
    """JSON object of path → value that version 3 will not receive; without files."""
    invalid: int
    """Number of identifiers that are not sent."""
    empty: str | None
    """JSON object of the additional fields with an empty text or list, as far as the target takes that."""


class CanonicalReader:
    """Reads the records of one library. `sent`, `first_day`: as for `form_of`."""

    def __init__(self, kinds: Kinds, sent: AbstractSet[str], *, first_day: bool = False) -> None:
        self._kinds = kinds
        self._sent = sent
        self._form_of = partial(form_of, kinds=kinds, sent=sent, first_day=first_day)
        self._known = kinds.record_keys | ADDRESSES
        self._identifier_keys = (*(field for field, _kind in kinds.fields), IDENTIFIER_LIST)
        self._repeated = lru_cache(2**14)(self._compare_repeated)
        self._unknown = lru_cache(2**12)(self._compare_unknown)
        self._additional = lru_cache(2**14)(self._compare_additional)
        self._any_value = frozenset(name for name, rule in kinds.additional.items() if rule == ANY_VALUE)

    def read(self, payload: bytes) -> CanonicalPublication | None:
        """The publication in the JSON of a record; None if its id is not a whole number. Never raises on data."""
        try:
            if not payload.isascii():
                payload.decode()
            members = _RAW(payload)
        except NOT_JSON:
            return self._read_any(decode_record(payload))
        number = _number(members.get("id"))
        if number is None:
            return None
        compared: dict[str, str] = {}
        sent: dict[str, str] = {}
        odd: list[str] = []
        author = self._fields(members, compared, sent, odd)
        for name in self._kinds.additional:
            if (one := members.get(name)) is not None:
                self._enter_additional(name, str(one, "utf-8"), compared, odd)
        found = self._identifiers(members, compared, sent)
        if found is None:
            odd += (name for name in self._identifier_keys if name in members)
        unknown = [name for name in members if name not in self._known]
        unsent = None
        if odd or len(unknown) > 1 or (unknown and len(members[unknown[0]]) > LONGEST_REMEMBERED):
            form = self._form_of({one: decode_json(bytes(members[one])) for one in (*odd, *unknown)})
            compared |= comparable(form.fields, self._kinds)
            sent |= _sent(form.fields)
            unsent = residue_json(form.unsent)
            found = form.identifiers if found is None else found
            author = form.fields["authors"][0]["name"] if "authors" in form.fields else author
        elif unknown:
            unsent = self._unknown(unknown[0], str(members[unknown[0]], "utf-8"))
        return _new(
            CanonicalPublication,
            (
                number,
                _fingerprint(compared, author),
                compared,
                sent,
                keys_of(found, compared.get("publishable_type") == _BOOK, self._kinds) if found else (),
                _files(members),
                unsent,
                count_left_out(found, self._sent) if found else 0,
                _empty(members, self._kinds) if self._kinds.additional else None,
            ),
        )

    def _read_any(self, record: Mapping[str, Any]) -> CanonicalPublication | None:
        """The same for JSON that only the lenient decoder accepts, or that is no object."""
        number = whole_number(record.get("id"))
        if number is None:
            return None
        form = self._form_of({name: value for name, value in record.items() if name not in _FILES})
        files = {name: msgspec.Raw(compact_json(record.get(name)).encode()) for name in ("id", *_FILES)}
        return CanonicalPublication(
            number,
            fingerprint(form.fields),
            comparable(form.fields, self._kinds),
            _sent(form.fields),
            identifying_keys(form, self._kinds),
            _files(files),
            residue_json(form.unsent),
            count_left_out(form.identifiers, self._sent),
            None,
        )

    def _fields(self, members: _Members, compared: dict[str, str], sent: dict[str, str], odd: list[str]) -> str | None:
        """Add all fields but the identifiers, and names of members that are not plain to `odd`. Returns the name of the first author."""
        for name in TEXT_FIELDS:
            if (one := members.get(name)) is not None:
                _enter_text(name, str(one, "utf-8"), compared, odd)
        for name in DATE_FIELDS:
            if (text := str(members.get(name, _ABSENT), "utf-8")) not in _NOTHING[name]:
                if text[0] == '"' and day(text[1:-1]):
                    compared[name] = text
                else:
                    odd.append(name)
        for name in _REPEATED:
            if (text := str(members.get(name, _ABSENT), "utf-8")) not in _NOTHING[name]:
                self._enter_repeated(name, text, compared, sent, odd)
        text = str(members.get("authors", _ABSENT), "utf-8")
        if text not in _NOTHING["authors"]:
            if plain := _AUTHORS.fullmatch(text):
                compared["authors"] = text
                return plain[1]
            odd.append("authors")
        return None

    def _enter_repeated(
        self, name: str, text: str, compared: dict[str, str], sent: dict[str, str], odd: list[str]
    ) -> None:
        known = self._repeated(name, text) if len(text) <= LONGEST_REMEMBERED else None
        if known is None:
            odd.append(name)
            return
        compared[name] = known[0]
        if name in SENT_OTHERWISE:
            sent[name] = known[1]

    def _enter_additional(self, name: str, text: str, compared: dict[str, str], odd: list[str]) -> None:
        if name in self._any_value and _SCALAR.fullmatch(text):
            compared[name] = text
            return
        known = self._additional(name, text) if len(text) <= LONGEST_REMEMBERED else None
        if known is None:
            odd.append(name)
        elif known:
            compared[name] = known

    def _compare_additional(self, name: str, text: str) -> str | None:
        """The text to compare of an additional field; empty for an empty value, None if a part of it is not sent."""
        form = self._form_of({name: decode_json(text.encode())})
        return None if form.unsent else comparable(form.fields, self._kinds).get(name, "")

    def _compare_repeated(self, name: str, text: str) -> tuple[str, str] | None:
        """The text to compare and the text to send of a member; None if they lose a part of it."""
        form = self._form_of({name: decode_json(text.encode())})
        if form.unsent or name not in form.fields:
            return None
        return comparable(form.fields, self._kinds)[name], compact_json(form.fields[name])

    def _compare_unknown(self, name: str, text: str) -> str | None:
        """The unsent JSON of a member that no rule names."""
        return residue_json(self._form_of({name: decode_json(text.encode())}).unsent)

    def _identifiers(
        self, members: _Members, compared: dict[str, str], sent: dict[str, str]
    ) -> list[Identifier] | None:
        """Add identifiers from valid flat fields or from a plain list; None if they need the general way."""
        found: list[Identifier] = []
        for field, kind in self._kinds.fields:
            if field not in members:
                continue
            text = str(members[field], "utf-8")
            if text in (_NULL, _EMPTY):
                continue
            quick = kind.read_clean(text[1:-1]) if text[0] == '"' and "\\" not in text else None
            if quick is None or quick.verdict not in self._sent:
                return None
            found.append(_new(Identifier, (quick[0], quick[1], text[1:-1], field, len(found), quick[2], quick[3])))
        text = str(members.get(IDENTIFIER_LIST, _ABSENT), "utf-8")
        if text not in _NOTHING[IDENTIFIER_LIST]:
            if found or not _ENTRIES.fullmatch(text):
                return None
            for kind_name, value in _ENTRY.findall(text):
                read_entry(kind_name, value, found, self._kinds)
            read = {one[:2] for one in found}
            sent[IDENTIFIER_LIST] = text
        elif found:
            chosen = dict.fromkeys([one[:2] for one in found])
            read = {pair for one in found for pair in self._again(one)}
            sent[IDENTIFIER_LIST] = compact_json([{"type": kind_name, "value": value} for kind_name, value in chosen])
        else:
            return found
        compared[IDENTIFIER_LIST] = compact_json(sorted(read))
        return found

    def _again(self, one: Identifier) -> list[tuple[str, str]]:
        """The result of a second reading, because the other side is read that way; a valid identifier does not change."""
        if one.verdict == VALID:
            return [one[:2]]
        return [found[:2] for found in self._kinds.read(one.type, one.value)]


def _enter_text(name: str, text: str, compared: dict[str, str], odd: list[str]) -> None:
    if text[0] == '"' and "\\" not in text:
        if len(text) > _QUOTES:
            compared[name] = text
    elif text != _NULL:
        value = decode_json(text.encode())
        if type(value) is str:
            compared[name] = compact_json(valid_text(value))
        else:
            odd.append(name)


def _number(token: msgspec.Raw | None) -> int | None:
    if token is None:
        return None
    text = str(token, "utf-8")
    return int(text) if _DIGITS.fullmatch(text) else whole_number(decode_json(text.encode()))


def _sent(fields: Mapping[str, Any]) -> dict[str, str]:
    return {name: compact_json(fields[name]) for name in SENT_OTHERWISE if name in fields}


def _fingerprint(compared: Mapping[str, str], author: str | None) -> str | None:
    title, published = compared.get("title"), compared.get("published_on")
    if title is None or published is None or author is None:
        return None
    words = title[1:-1] if "\\" not in title else str(decode_json(title.encode()))
    return fingerprint_of(words, published[1:5], author)


def _empty(members: _Members, kinds: Kinds) -> str | None:
    """The additional fields with an empty text or list, as far as the target takes that. A link is empty only as a list."""
    found = {}
    for name, rule in kinds.additional.items():
        text = str(members.get(name, _ABSENT), "utf-8")
        if (text == _EMPTY and not rule.leads_to and rule.takes("")) or (text == _NO_MEMBERS and rule.takes([])):
            found[name] = members[name]
    return compact_json(found) if found else None


def _files(members: _Members) -> str | None:
    found = [str(members.get(name, _ABSENT), "utf-8") for name in _FILES]
    if found[0] == _NULL and found[1] in _NOTHING["assets"]:
        return None
    return _without_addresses(f'{{"id":{str(members["id"], "utf-8")},"cover":{found[0]},"assets":{found[1]}}}')


def _without_addresses(text: str) -> str:
    """The text with null for each address of a file, by its name; a longer name that only ends like one keeps its value."""
    before, *parts = text.split(_URL)
    kept = [before]
    for part in parts:  # it begins within the value, and ends with the beginning of the next name
        name = before.rfind('"')
        is_address = before[name:] in _BEFORE_ADDRESS and before[name - 1] != "\\"
        value = _VALUE.match(part) if is_address else None
        kept.append(f'url":null{part[value.end() :]}' if value else f"{_URL}{part}")
        before = part
    return "".join(kept)
