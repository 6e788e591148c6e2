"""Finds texts and numbers that name records of another resource by a code, such as that of a location, which is another in the target.

A code that both libraries give to the same record is sent as it stands. Where another record of the target has it, or the same record has
another one there, it would name the wrong record: which code stands for it is a question to a person.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from pipelines.migration.mapping.ids_in_values import DATE, MOST_VALUES, values_in
from pipelines.migration.model.resource_types import ResourceType
from pipelines.migration.model.target_reading import RecordListing
from pipelines.records.additional_fields import is_managed
from pipelines.records.paths import value_at
from pipelines.records.shapes.field_names import is_quantity
from pipelines.records.shapes.observation import ANY_KEY

MOST_OBJECTS = 500
"""Objects within records whose keys are compared; in a map, each value is one."""

LONGEST_CODE = 100
"""Characters of a text that may be a code."""

Place = tuple[str, str]
"""A resource, and the path of a field of its records."""

Key = tuple[str, str, str]


class DifferingCodes(NamedTuple):
    """The codes in one field that name other records in the target, or none."""

    owners: tuple[Place, ...]
    """The fields of records which have them, of one resource or several: nothing says which of these are meant."""
    in_target: dict[str, list[str]]
    """Code → those of the same records in the target, as far as they are there."""

    def joined(self, owner: Place, in_target: Mapping[str, Iterable[str]]) -> DifferingCodes:
        """These, and the codes that another field has."""
        codes = {**self.in_target}
        for code, target_codes in in_target.items():
            codes[code] = [*dict.fromkeys((*codes.get(code, ()), *target_codes))]
        return DifferingCodes((*self.owners, owner), codes)


_NONE_DIFFER = DifferingCodes((), {})


class _Codes:
    """The codes that one field of a resource gives to records of the source, and what the same records have there in the target."""

    def __init__(self, field: str) -> None:
        self.field = field
        self._of_record = dict[Key, str]()
        """Key of a record → its code."""
        self._codes, self._is_unique = dict[str, str](), True
        """Code without regard to case → itself."""
        self._equal, self._of_others = set[str](), set[str]()
        """Codes that the same record has in the target, or another one."""
        self._in_target = dict[str, list[str]]()

    def note(self, code: str, keys: Iterable[Key]) -> None:
        """Add the code of a record of the source; `keys`: those of the record, if the code may be in another field, too."""
        folded = code.casefold()
        self._is_unique = self._is_unique and folded not in self._codes
        if keys or len(self._codes) < MOST_VALUES:
            self._codes[folded] = code
        self._of_record.update(dict.fromkeys(keys, code))

    def in_text(self, parts: Sequence[str]) -> list[str]:
        """The code that a text is, in any case, or those that are parts of it."""
        if (whole := self._codes.get(parts[0])) is not None:
            return [whole]
        return [self._codes[part] for part in parts[1:] if part in self._codes]

    def name_most(self, texts: Collection[Sequence[str]]) -> bool:
        """Whether most of the texts with these parts have a code of one record. What several records have, such as a kind, is no code.

        Nor is the only number of a field, such as 1 where all other records have 0.
        """
        without_code = (parts for parts in texts if not self.in_text(parts))
        is_flag = len(self._codes) == 1 and next(iter(self._codes)).isdigit()
        return self._is_unique and not is_flag and next(islice(without_code, (len(texts) - 1) // 2, None), None) is None

    def compare(self, code: str | None, keys: AbstractSet[Key]) -> None:
        """Note the code that a record of the target has."""
        known = {self._of_record[key] for key in keys & self._of_record.keys()}
        if code is not None:
            if code in known:
                self._equal.add(code)
            else:
                self._of_others.add(code.casefold())
        for earlier in known - {code}:
            self._in_target.setdefault(earlier, []).extend([code] if code is not None else [])

    def differing(self, texts: Mapping[str, Sequence[str]], *, is_sent: bool) -> dict[str, list[str]]:
        """Those of the texts that name another record in the target, or none.

        `texts`: each with its parts; `is_sent`: whether a new record gets its code.
        """
        differing = dict[str, list[str]]()
        for text, parts in sorted(texts.items()):
            codes = self.in_text(parts)
            unequal = [code for code in codes if code not in self._equal and (code in self._in_target or not is_sent)]
            if unequal or not (codes or is_sent) or not self._of_others.isdisjoint(parts):
                differing[text] = [target_code for code in codes for target_code in self._in_target.get(code, ())]
        return differing


def differing_codes(
    texts: Mapping[Place, AbstractSet[str]],
    types: Mapping[str, ResourceType],
    source: Mapping[str, RecordListing],
    target: Mapping[str, RecordListing],
) -> dict[str, dict[str, DifferingCodes]]:
    """Resource → path of a field most of whose texts have codes of records → those that differ in the target.

    `texts`: those of each field; `types`: how the records of each resource are moved, by which they are matched. What the service documents
    of publications are no codes.
    """
    differing = dict[str, dict[str, DifferingCodes]]()
    parts_at = {place: {text: parts_of(text) for text in known} for place, known in texts.items()}
    every_text = {part for known in parts_at.values() for parts in known.values() for part in parts}
    compared_owners = [owner for owner in target if owner in types]
    for owner in compared_owners if every_text else ():
        owners = _matched_by_values(types[owner])
        of_target = owners.of_target
        own_paths = [path for resource, path in texts if resource == owner]
        codes, own_names = _codes(owners, source[owner].records(), every_text, own_paths)
        named = {
            (resource, path): [
                field
                for name, field in codes.items()
                if not (resource == owner and (path, name) in own_names) and field.name_most(known.values())
            ]
            for (resource, path), known in parts_at.items()
        }
        compared = [field for field in codes.values() if any(field in fields for fields in named.values())]
        for record in target[owner].records() if compared else ():
            keys = _keys(of_target, record)
            for field in compared:
                field.compare(_own_code_of(field.field, value_at(record, field.field)), keys)
        sent = {key for name in owners.fields if owners.created for key in owners.keys_of(name)}
        for (name, path), fields in named.items():
            for field in fields:
                if asked := field.differing(parts_at[name, path], is_sent=field.field in sent):
                    earlier = differing.setdefault(name, {}).get(path, _NONE_DIFFER)
                    differing[name][path] = earlier.joined((owner, field.field), asked)
    return differing


def texts_of(resource_type: ResourceType, records: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    """Path of what is sent as it stands, at any depth, and may be nothing but codes → the different ones."""
    parts = resource_type.parts.items()
    plain = {path: part for path, part in parts if not (part.refers or part.entries or part.is_open)}
    texts = dict[str, set[str] | None]()
    for record in records if plain else ():
        for name, part in plain.items():
            for names, value in values_in((name,), part.read_apart(record, name)):
                path = "/".join(names)
                known = texts.setdefault(path, set())
                code = code_of(names[-1], value)
                if known is None or len(known) > MOST_VALUES or code is None:
                    texts[path] = None
                else:
                    known.add(code)
    return {path: known for path, known in texts.items() if known}


def code_of(name: str, value: object) -> str | None:
    """The text or whole number that a value of a field of this name is; None where it cannot be a code, as a date or a quantity."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_CODE and value.isprintable() and not DATE.match(value) else None
    return str(value) if type(value) is int and not is_quantity(name) else None


def _own_code_of(path: str, value: object) -> str | None:
    """The same of a field of the record that the code names: its `number` counts nothing."""
    is_number = type(value) is int and path.rpartition("/")[2].casefold() in _OWN_NUMBERS
    return str(value) if is_number else code_of(path, value)


_OWN_NUMBERS = frozenset({"no", "nr", "num", "number"})


def parts_of(text: str) -> list[str]:
    """A text and its parts, without regard to case: `DEP/7` and `DEP, READ` have codes."""
    folded = text.casefold().strip()
    return [folded, *filter(None, (part.strip() for part in re.split(r"[/|:;,]", folded)))]


def keys_of_objects(records: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    """Path of the objects within records, with `/*` at its end → their keys: `{"DEP": 2}` says how many are in a location."""
    keys = dict[str, set[str]]()
    for record in records:
        for name, value in record.items():
            for path, key in _keys_in(name, value):
                known = keys.setdefault(path, set()) if len(keys) < MOST_OBJECTS else keys.get(path, set())
                if len(known) < MOST_VALUES:
                    known.add(key)
    return keys


def _keys_in(path: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield f"{path}/{ANY_KEY}", name
            yield from _keys_in(f"{path}/{name}", member)
    elif isinstance(value, list):
        for entry in value:
            yield from _keys_in(path, entry)


def _codes(
    resource_type: ResourceType, records: Iterable[Mapping[str, Any]], texts: AbstractSet[str], paths: Sequence[str]
) -> tuple[dict[str, _Codes], set[tuple[str, str]]]:
    """Field of a resource → the codes that it gives to records. `texts`: those that other fields have.

    Beside it those of the fields `paths` that always have the code which the same record has in another one, as a part at least, with that:
    it names the record itself.
    """
    known_paths = {*paths}
    codes, uses, equal = dict[str, _Codes](), Counter[str](), Counter[tuple[str, str]]()
    for record in records:
        names_of_record = record.keys() - resource_type.ruled
        places = [
            ("/".join(names), value) for name in names_of_record for names, value in values_in((name,), record[name])
        ]
        of_record = {path: _own_code_of(path, value) for path, value in places if value_at(record, path) == value}
        codes_of_record = {code.casefold() for code in of_record.values() if code is not None}
        keys = set() if texts.isdisjoint(codes_of_record) else _keys(resource_type, record)
        for path, code in of_record.items():
            if code is not None and not is_managed(path):
                codes.setdefault(path, _Codes(path)).note(code, keys if code.casefold() in texts else ())
        folded = {path: code.casefold() for path, code in of_record.items() if code is not None}
        for path, value in places:
            if path in known_paths:
                parts = {*parts_of(code_of(path, value) or "")}
                uses[path] += 1
                equal.update((path, name) for name, code in folded.items() if code in parts)
    return codes, {(path, name) for (path, name), count in equal.items() if count == uses[path]}


def _matched_by_values(resource_type: ResourceType) -> ResourceType:
    """The type whose records are matched without ids of others, of which each library has its own."""
    without_ids = (
        tuple(name for name in names if name not in resource_type.references) for names in resource_type.keys
    )
    return replace(resource_type, keys=tuple(filter(None, without_ids)) or (("id",),))


def _keys(resource_type: ResourceType, record: Mapping[str, Any]) -> set[Key]:
    return {*resource_type.match_keys(resource_type.values(record))}
