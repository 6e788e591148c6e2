"""Finds fields that may refer to records by their values, whatever their names: an id of any record stands in them.

The service does not document such fields (service.md#not-shown). Numbers of the source are other records in the target, so that nothing
with such a number is sent as it stands until a person says so. Nothing is concluded from it: many are there by chance.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import unquote

from pipelines.migration.model.target_reading import RecordListing
from pipelines.records.shapes.field_names import is_quantity, may_be_count, named_kind, singular, words_of
from pipelines.records.shapes.observation import ANY_KEY
from pipelines.records.values import RecordId, decode_json, record_id

MOST_VALUES = 10_000
"""Different values of a field that are compared."""

MOST_PATHS = 1_000
"""Paths within records that are told apart; values of all others count for the field."""

MOST_TEXTS = 100_000
"""Different texts, numbers and words of a field that are compared with ids."""

_NUMBERS = re.compile(r"[/.]?#?[0-9]{1,18}(?:\s*[,;|/>.\s-]\s*#?[0-9]{1,18})*[/.]?")
"""Matches whole numbers as texts, as the service would write ids: one, several, or a path of them such as `1/2/3`."""

_NO_ID = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])(?:-[0-3]\d)?(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?"  # of ISO 8601
    r"|\d{1,2}[./-]\d{1,2}[./-]\d{4}"
    r"|\d+\.\d\d"
    r"|(?:https?://orcid\.org/)?\d{4}-\d{4}-\d{4}-\d{3}[\dX]"
)
"""Matches a text that is a date, also as people write it, a price, or the ORCID iD of a person."""

DATE = re.compile(r"\d{4}-\d\d(?!\d)|\d{1,2}[./-]\d{1,2}[./-]\d{4}(?!\d)")
"""Matches a text that begins with a date, of ISO 8601 or as people write it."""

_OF_FIXED_WIDTH = re.compile("[0-9]{9,}")
"""Matches numbers with zeros before them, one behind the other, such as `01000104310`."""

_DIGITS, _WORDS = re.compile("[0-9]+"), re.compile(r"[^\W_]+")

_KEY = re.compile(r"(?=.*[0-9])(?:.*[^\w.-].*|[\w-]{20,})")
"""Matches a text with a number that is long, as a UUID is, or has a sign, such as `pub:7`."""

_ORDERS = (["order"], ["sequence"], ["sort"])
"""Last words in the name of a list with the order of other records."""

_THINGS = frozenset({"copy", "edition", "issue", "part", "version", "volume"})
"""Words for quantities that are those of things, too: a volume may be a publication."""

_NONE = (None, "", 0)
"""Values that say that there is no record."""

_UUID = re.compile("[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)

Path = tuple[str, ...]


def text_ids_in(records: Iterable[Mapping[str, Any]], listings: Mapping[str, RecordListing]) -> set[str]:
    """The texts in records, at any depth, also as keys, that are ids of records of these listings and no whole numbers."""
    with_texts = [listing for listing in listings.values() if listing.has_text_ids]
    texts = set[str]()
    for record in records if with_texts else ():
        for name in record.keys() - {"id"}:
            within = values_in((name,), record[name], keys=_Everything())
            values = (value for _path, value in within if isinstance(value, str))
            texts.update(islice((text for text in values if isinstance(record_id(text), str)), MOST_TEXTS - len(texts)))
    return {text for listing in with_texts for ids in listing.ids() for text in texts & ids}


class _Everything:
    """Contains whatever is looked up in it."""

    def __contains__(self, _: object) -> bool:
        return True


class IdsWithin(NamedTuple):
    """The ids that stand in the values of a field."""

    different: int
    """The different numbers and words in them that may be ids."""
    of: Mapping[str, int]
    """Resource → how many of these are its ids; empty where they may only be those of a resource that was not read."""
    are_most: bool
    """Whether half of the values or more are nothing but ids of one resource."""
    are_values: bool
    """The same, and the field is not named after a quantity."""


class _Values:
    """The values of the records of a resource at one path."""

    def __init__(self, path: Path) -> None:
        self.is_quantity = is_quantity("_".join(path))  # `borrower: {number: 7}` is the number of a borrower
        *before, last = words_of(path[-1]) or [""]
        self.may_be_thing = bool(before) and singular(last) in _THINGS
        """Whether it may be named after a thing that has a number: `previous_edition`."""
        self._are_several, self._are_places = False, len(path) > 1 or "/" in path[0]
        self.within = set[str]()
        """The numbers and words in the values."""
        self._whole, self._others = set[str](), set[int]()
        """Values that are nothing but numbers or one word; and the others."""
        self.ids, self._whole_ids = Counter[str](), Counter[str]()
        """Resource → how many are its ids: of all that is in the values, and of the values themselves."""

    def add(self, values: Sequence[object], *, with_words: bool) -> None:
        """Add the values of a record in their order. `with_words`: ids may be texts."""
        self._are_several |= len(values) > 1
        self._are_places &= [*values] == [*range(1, len(values) + 1)]
        for value in values:
            if len(self.within) < MOST_TEXTS:
                self.within.update(_parts(value, with_words=with_words))
            if (whole := _whole(value, with_words=with_words)) and len(self._whole) < MOST_VALUES:
                self._whole.update(whole)
            elif not whole and len(self._others) < MOST_VALUES:
                self._others.add(hash(str(value)))

    def compare(self, resource: str, ids: Collection[str]) -> None:
        """Note those that are ids of a resource."""
        self.ids[resource] += len(self.within.intersection(ids))
        self._whole_ids[resource] += len(self._whole.intersection(ids))

    @property
    def are_places(self) -> bool:
        """Whether they are named after a quantity, and number the entries of a list: 1, 2, 3."""
        return self.is_quantity and self._are_several and self._are_places

    @property
    def numbers(self) -> set[str]:
        """The values that are nothing but whole numbers or UUIDs, as ids are; none of a quantity."""
        return {whole for whole in self._whole if not self.is_quantity and (whole.isdigit() or _UUID.fullmatch(whole))}

    def are_ids(self, *, are_known: bool) -> bool:
        """Whether half of the values or more are ids of one resource; numbers, where the ids of some resource are not known."""
        most = max(0 if are_known else len(self.numbers), *self._whole_ids.values(), 0)
        return most > 0 and most * 2 >= len(self._whole) + len(self._others)


def fields_with_ids(
    records: Iterable[Mapping[str, Any]],
    names: Collection[str],
    listings: Mapping[str, RecordListing],
    *,
    text_ids: Container[str] = (),
    asks_quantities: bool = True,
    are_known: bool = True,
) -> dict[str, IdsWithin]:
    """Field → the ids that stand in its values, at any depth, also as keys and within texts. A field without any is left out.

    `listings`: every resource of the same library; `text_ids`: as `text_ids_in` has those of the records.
    `asks_quantities`: whether what is named after a quantity may be ids; not of publications, whose volumes, pages and editions are what
    they are called, unless it is another one, such as `previous_edition`. `are_known`: whether these are all ids of the library; else
    each value that is nothing but whole numbers, and not named after a quantity, may be some.
    """
    with_words = not are_known or any(listing.has_text_ids for listing in listings.values())
    by_path = _values_by_path(records, names, text_ids, with_words=with_words)
    by_path = {
        path: values
        for path, values in by_path.items()
        if not values.are_places and (asks_quantities or not values.is_quantity or values.may_be_thing)
    }
    for resource, listing in listings.items() if by_path else ():
        for ids in listing.ids():
            forms = {_as_part(number) for number in ids}
            for values in by_path.values():
                values.compare(resource, forms)
    fields = dict[str, IdsWithin]()
    for name in names:
        below = [values for path, values in by_path.items() if path[0] == name]
        owners = +sum((values.ids for values in below), Counter[str]())
        if owners or (not are_known and any(values.numbers for values in below)):
            different = sum(len(values.within) for values in below)
            of_ids = [values for values in below if values.are_ids(are_known=are_known)]
            are_values = any(not values.is_quantity for values in of_ids)
            fields[name] = IdsWithin(different, dict(owners.most_common()), bool(of_ids), are_values)
    return fields


def _values_by_path(
    records: Iterable[Mapping[str, Any]], names: Collection[str], text_ids: Container[str], *, with_words: bool
) -> dict[Path, _Values]:
    by_path = dict[Path, _Values]()
    for record in records:
        in_record = dict[Path, list[object]]()
        for name in names:
            for path, value in values_in((name,), record.get(name), keys=text_ids):
                in_record.setdefault(path, []).append(value)
        for path, values in in_record.items():
            place = path if path in by_path or len(by_path) < MOST_PATHS else path[:1]
            if place not in by_path:
                by_path[place] = _Values(place)
            by_path[place].add(values, with_words=with_words)
    return by_path


def _as_part(number: RecordId) -> str:
    """An id in the form in which `_parts` has it: of a text with several words the longest one with a digit, if there is one."""
    if isinstance(number, int):
        return str(abs(number))
    if _NO_ID.fullmatch(number):
        return number
    if _UUID.fullmatch(number):
        return number.replace("-", "").lower()
    words = _WORDS.findall(number.casefold())
    return max(words, key=lambda word: (_DIGITS.search(word) is not None, len(word)), default=number)


def _parts(value: object, *, with_words: bool) -> Iterator[str]:
    """Yield the numbers in a value, without zeros before them, and the words in a text; a date, a price, an iD and a UUID are one word."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str):
        if type(value) is int:
            yield str(abs(value))
    elif _NO_ID.fullmatch(value) or _UUID.fullmatch(value):
        yield from [_as_part(value)] if with_words else []
    else:
        value = unquote(value)
        yield from (digits for text in _DIGITS.findall(value) if (digits := text.lstrip("0")))
        yield from (digits for text in _OF_FIXED_WIDTH.findall(value) for digits in re.split("00+", text) if digits)
        if with_words:
            yield from _WORDS.findall(value.casefold())
            yield from (uuid.replace("-", "").lower() for uuid in _UUID.findall(value))


def _whole(value: object, *, with_words: bool) -> list[str]:
    """The numbers or the text that a value is, if it may be nothing but ids."""
    if isinstance(value, str) and not _NUMBERS.fullmatch(value):
        number = record_id(value) if with_words and value.split() == [value] else None
        return [] if number is None else [_as_part(number)]
    return [] if type(value) is int and value < 0 else [*_parts(value, with_words=False)]


def values_in(path: Path, value: object, keys: Container[str] = ()) -> Iterator[tuple[Path, object]]:
    """Yield the path of each value that is no object and no list, and the value; keys that are numbers, or of `keys`, are values, too."""
    if isinstance(value, dict):
        has_kind = any(named_kind(member) for member in value.values())
        for name, member in value.items():
            is_key = is_value(name) or name in keys
            if is_key:  # `weights: {7: 3}` says what the values are, and not the keys
                yield (*path, "id") if may_be_count(path[-1]) else path, name
            inner = (*path, ANY_KEY if is_key else name)
            # `{kind: "publication", number: 7}` is no quantity
            yield from values_in(
                (*inner, "id") if has_kind and not isinstance(member, dict | list) else inner, member, keys
            )
    elif isinstance(value, list):
        # `order: [7, 3]` and `volumes: [7, 3]` are no quantities; `items/volume` is one in each of several objects
        are_ids = "/" not in path[-1] or words_of(path[-1])[-1:] in _ORDERS
        for entry in value:
            yield from values_in(
                (*path, "ids") if are_ids and not isinstance(entry, dict | list) else path, entry, keys
            )
    elif value not in _NONE or value is False:
        inside = _decoded(value) if isinstance(value, str) else None
        yield from values_in(path, inside, keys) if inside is not None else ()
        if not isinstance(inside, dict | list):  # an id may be `Task:7` in base64 itself
            yield path, value


def is_value(key: str) -> bool:
    """Whether a key of an object is a value rather than a name: numbers, also one behind a name, as in `pub:7`, a UUID, several words."""
    return _NUMBERS.fullmatch(key) is not None or _KEY.fullmatch(key) is not None or " " in key


_JSON = ("{", "[")
"""The beginnings of objects and lists."""

_BASE64 = re.compile(r"(?=.{4,500}$)([A-Za-z0-9+/_-]+)={0,2}")


def _decoded(text: str) -> object:
    """The object or list that a text is in JSON, or the number or key of a record that it is in base64; `None` if it is neither."""
    try:
        if text.lstrip()[:1] in _JSON:
            return decode_json(text.encode())
        if encoded := _BASE64.fullmatch(text):
            inside = b64decode(f"{encoded[1]}==", altchars=b"-_" if {*"-_"} & {*text} else None).decode("ascii")
            return inside if _NUMBERS.fullmatch(inside) or (inside.isprintable() and _KEY.fullmatch(inside)) else None
    except ValueError:
        pass
    return None
