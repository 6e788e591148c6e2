"""Finds fields that may refer to records by their values, whatever their names: numbers that are all ids, and addresses of records.

The service does not document such fields (service.md#not-shown). Numbers of the source are other records in the target, so that a field
that may refer to records is not sent as it stands. Nothing is concluded from it: where the field leads is a question to a person.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections import Counter
from collections.abc import Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

from pipelines.migration.model.target_reading import RecordListing
from pipelines.records.shapes.field_names import (
    is_quantity,
    may_be_count,
    named_kind,
    names_records,
    names_resource,
    resource_named,
    stem_of,
    words_of,
)
from pipelines.records.shapes.observation import ANY_KEY
from pipelines.records.values import RecordId, decode_json, record_id

MOST_VALUES = 10_000
"""Different numbers of a field that are compared."""

MOST_TEXTS = 100_000
"""Different texts of records that are compared with ids."""

MOST_OF_TEXT = 60
"""Characters by which texts are told apart."""

MOST_OF_ADDRESS = 500
"""Characters of a text that may be the address of a record."""

_ADDRESS = re.compile(
    r"(?P<scheme>https?:|//)?(?:\S*[/:])?(?P<name>[A-Za-z_-]+)[/:#][^/:?#\s]*[0-9][^/:?#\s]*(?:[/?#]\S*)?"
)
"""Matches a text that ends in a name and an id: `/books/3`, `https://library/api/v2/users/7`, `gid://app/Publication/3`, `urn:user:3`,
`Publication#3`."""

_QUERY = re.compile(r"(?P<scheme>https?:|//)?\S*[?&](?P<name>[A-Za-z_-]+)=[0-9]+")
"""Matches a text that ends in a name and an id as a parameter: `?collection=3`."""

_API = re.compile(r"/api/v[0-9]+/", re.IGNORECASE)

_NUMBERS = re.compile(r"[/.]?#?[0-9]{1,18}(?:\s*[,;|/>.\s-]\s*#?[0-9]{1,18})*[/.]?")
"""Matches whole numbers as texts, as the service would write ids: one, several, or a path of them such as `1/2/3`."""

_DECIMAL = re.compile(r"[0-9]{1,18}\.[0-9]{2}")
"""Matches a number as a text with two decimals, such as a price."""

DATE = re.compile(r"\d{4}-\d\d(?!\d)|\d{1,2}[./-]\d{1,2}[./-]\d{4}(?!\d)")
"""Matches a text that begins with a date, of ISO 8601 or as people write it."""

_KIND_AND_NUMBER = re.compile(
    r"(?:.*?[^\w-])??([a-z_-]*[a-z])[\s:=_#-]*(?:\b(?:id|no|nr)\b\.?[:=]?\s?)?#?([1-9][0-9]{0,17})", re.IGNORECASE
)
"""Matches a text that ends in a kind and a number, as in `user 3`, `User ID: 3`, `use:3` or `see loc-3`: one of all records, or it may be a
title."""

_DIGITS, _TIME = re.compile("[0-9]+"), re.compile(r"[0-9]{1,2}:[0-9]{2}(?![0-9])")

_AT_END = re.compile(r"\D.*[#(\[]([1-9][0-9]{0,17})[)\]]?", re.DOTALL)
"""Matches a text with a number at its end, as in `Main hall (7)` and `Ada #3`."""

_WORDS = re.compile(r"""[^\s"'()<>\[\]]+""")
"""Matches the words of a text, with markup or without; some may be addresses, as in `<a href="/publications/7">`."""

_KEY = re.compile(r"(?=.*[0-9]).*[:/#=].*")
"""Matches a text with a number and a sign that leads to it, such as `pub:7`."""

MOST_PLACES = 50
"""Places of numbers in texts that are told apart, by what stands around them, such as `U0` for `U3`."""

AT_END, BEHIND_NAME = "at the end", "behind a name"
"""Places that count whatever else a text has: `Main hall (7)` and `Bound with record 7, see there`."""

MOST_IDS_OF_PATH = 3
"""Numbers of a text such as `1/2/3` that may each be of another resource; a longer one is an ISBN or an address."""

AMONG_OTHERS = "among others"
"""Any place, of numbers that are few among other values."""

MOST_DIGITS, LONGEST_NAME = 18, 40
"""Digits of an id, and characters before one that may name its records."""

_TITLES = frozenset({"name", "title", "label", "heading"})
"""Last words of fields whose texts name their own record, as `Task 3` may."""

_ORDERS = (["order"], ["sequence"], ["sort"])
"""Last words in the name of a list with the order of other records."""

_NONE = (None, "", 0)
"""Values that say that there is no record."""

DANGLING = 2
"""One in so many numbers may be that of a record which is gone."""

Path = tuple[str, ...]


def text_ids_in(records: Iterable[Mapping[str, Any]], listings: Mapping[str, RecordListing]) -> set[str]:
    """The texts in records, at any depth, that are ids of records of these listings and no whole numbers; UUIDs also within texts."""
    with_texts = [listing for listing in listings.values() if listing.has_text_ids]
    texts = set[str]()
    for record in records if with_texts else ():
        for name in record.keys() - {"id"}:
            for _path, value in values_in((name,), record[name]):
                whole = [value] if isinstance(value, str) and isinstance(record_id(value), str) else []
                texts.update(islice((*whole, *_uuids(value)), MOST_TEXTS - len(texts)))
    return {text for listing in with_texts for ids in listing.ids() for text in texts & ids}


def _uuids(value: object) -> list[str]:
    """The UUIDs in a text, in whatever form, as they are mostly written."""
    uuids = map(UUID, _UUID.findall(value)) if isinstance(value, str) and len(value) >= LENGTH_OF_UUID else ()
    return [*map(str, uuids)]


LENGTH_OF_UUID = 32

_UUID = re.compile("[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)


class _Values:
    """The values that the records of a resource have at one path."""

    def __init__(self) -> None:
        self.numbers = set[RecordId]()
        """Those that may be ids."""
        self._others = set[str]()
        """Such as -1, true or `none`, which may stand for no record."""
        self._are_measures = self._are_several = False
        self._are_places = True

    def add(self, value: object, numbers: Collection[RecordId]) -> None:
        """Add a value, with the ids that it may be."""
        self._are_measures |= isinstance(value, float) and not value.is_integer()
        if numbers and len(self.numbers) < MOST_VALUES:
            self.numbers.update(numbers)
        elif not numbers and len(self._others) <= MOST_VALUES:
            self._others.add(str(value)[:MOST_OF_TEXT])

    def note_places(self, numbers: Sequence[RecordId]) -> None:
        """Note the numbers of one record in their order: 1, 2, 3 are the places of entries in a list."""
        self._are_places &= numbers == [*range(1, len(numbers) + 1)]
        self._are_several |= len(numbers) > 1

    def may_be_ids(self, path: Path, *, asks_quantities: bool) -> bool:
        """Whether most of the different values may be ids. A count never is one."""
        if len(self._others) >= len(self.numbers):
            return False
        if not is_quantity("_".join(path)):  # `borrower: {number: 7}` is the number of a borrower
            return True
        if self._are_measures:
            return False
        are_places = self._are_places and self._are_several and (len(path) > 1 or "/" in path[0])
        return asks_quantities and not are_places and words_of(path[-1])[-1:] != ["count"]


class _Texts:
    """The texts that the records of a resource have at one path and that are no numbers, with the numbers in them."""

    def __init__(self) -> None:
        self._hashes = set[int]()
        """Those of the different texts."""
        self._texts_with = Counter[str]()
        """Place in texts → the different texts with a number there."""
        self._numbers = dict[str, set[RecordId]]()
        """The same → these numbers."""
        self.all_numbers = set[RecordId]()

    def add(self, text: str) -> None:
        """Add a text."""
        if hash(text) in self._hashes or len(self._hashes) >= MOST_VALUES or _is_no_id(text):
            return
        self._hashes.add(hash(text))
        if len(self.all_numbers) < MOST_VALUES:
            self.all_numbers.update(int(digits) for digits in _DIGITS.findall(text) if len(digits) <= MOST_DIGITS)
        for place, number in _numbers_within(text):
            if place in self._numbers or place in (AT_END, BEHIND_NAME) or len(self._numbers) < MOST_PLACES:
                self._texts_with[place] += 1
                self._numbers.setdefault(place, set()).add(number)

    def numbers(self, path: Path) -> Iterator[tuple[str, set[RecordId]]]:
        """Yield the places of numbers that may be ids, and these: different ones, in most of the texts or behind a name of records."""
        for place, numbers in self._numbers.items() if not _is_title(path) else ():
            are_in_most = self._texts_with[place] * 2 >= len(self._hashes)
            if place == BEHIND_NAME or (are_in_most and len(numbers) > 1):
                yield place, numbers


def _numbers_within(text: str) -> Iterator[tuple[str, int]]:
    """Yield place and value of the numbers in a text that may be ids: those in the same place of other texts are, too."""
    if at_end := _AT_END.fullmatch(text):
        yield AT_END, int(at_end[1])
    is_short = len(text) <= MOST_OF_ADDRESS
    form = _DIGITS.sub("0", text) if is_short else ""
    count = form.count("0")
    are_ids = not text[0].isdigit() or (count <= MOST_IDS_OF_PATH and _NUMBERS.fullmatch(text))
    are_ids = are_ids or (count > 1 and not _TIME.match(text))  # unlike `300 p.`
    for position, digits in enumerate(_DIGITS.finditer(text)):
        if len(digits[0]) > MOST_DIGITS:
            continue
        if is_short and are_ids:
            yield f"{form} {position}", int(digits[0])
        named = _KIND_AND_NUMBER.fullmatch(text[max(0, digits.start() - LONGEST_NAME) : digits.end()])
        if named and names_records(stem_of(named[1])):
            yield BEHIND_NAME, int(digits[0])


def fields_with_ids(
    records: Iterable[Mapping[str, Any]],
    names: Collection[str],
    listings: Mapping[str, RecordListing],
    text_ids: Container[str] = (),
    *,
    asks_quantities: bool = True,
) -> dict[str, list[str]]:
    """Field → the resources whose ids are half of its numbers or more, or whose record any of its texts is the address of, at any depth.

    `listings`: every resource of the same library; `text_ids`: those of their ids that are no numbers. `asks_quantities`: whether what is
    named after a quantity may be ids; not of publications, whose volumes, pages and editions are what they are called.
    """
    values, texts, addressed = dict[Path, _Values](), dict[Path, _Texts](), dict[str, list[str]]()
    for record in records:
        for name in names:
            numbers_at = dict[Path, list[RecordId]]()
            for path, value in values_in((name,), record.get(name)):
                numbers = _numbers(value, is_title=_is_title(path), text_ids=text_ids)
                values.setdefault(path, _Values()).add(value, numbers)
                numbers_at.setdefault(path, []).extend(numbers)
                if not isinstance(value, str):
                    continue
                if resource := _resource_addressed_in(value):
                    addressed.setdefault(name, [resource])
                elif len(numbers) != 1:
                    texts.setdefault(path, _Texts()).add(value)
            for path, numbers in numbers_at.items():
                values[path].note_places(numbers)
    may_be_ids = {
        path: known.numbers for path, known in values.items() if known.may_be_ids(path, asks_quantities=asks_quantities)
    }
    among_others = dict[Path, set[RecordId]]()
    for path in (path for path in values if not is_quantity("_".join(path))):
        within = texts.get(path, _Texts())
        among_others[*path, AMONG_OTHERS] = values[path].numbers | within.all_numbers
        may_be_ids |= {(*path, place): numbers for place, numbers in within.numbers(path)}
    owners = dict[str, dict[str, None]]()
    for path, resources in resources_with(may_be_ids | among_others, listings, among_others).items():
        owners.setdefault(path[0], {}).update(dict.fromkeys(resources))
    return addressed | {name: [*resources] for name, resources in owners.items()}


def _is_title(path: Path) -> bool:
    """Whether texts may name their own record: only what is an id by no chance counts in them."""
    return not _TITLES.isdisjoint(words_of(path[-1])[-1:])


Place = TypeVar("Place", bound=Hashable)


def resources_with(
    ids_at: Mapping[Place, AbstractSet[RecordId]],
    listings: Mapping[str, RecordListing],
    among_others: Container[Place] = (),
) -> dict[Place, list[str]]:
    """Place → the resources that have its numbers as their ids, but for those of records that are gone.

    `among_others`: places where ids would be few among other values, so that only those count which are there by no chance.
    """
    owners = dict[Place, list[str]]()
    for resource, listing in listings.items() if ids_at else ():
        dangling, ids_of_length = {place: {*numbers} for place, numbers in ids_at.items()}, Counter[int]()
        for ids in listing.ids():
            ids_of_length.update(len(str(number)) for number in ids if isinstance(number, int))
            for numbers in dangling.values():
                numbers.difference_update(ids)
        for place, numbers in dangling.items():
            known = ids_at[place] - numbers
            if place in among_others:
                are_ids = _are_no_chance(known, ids_at[place], ids_of_length)
            else:
                are_ids = len(known) * DANGLING >= len(ids_at[place])
            if are_ids:
                owners.setdefault(place, []).append(resource)
    return owners


def _are_no_chance(
    known: AbstractSet[RecordId], numbers: AbstractSet[RecordId], ids_of_length: Mapping[int, int]
) -> bool:
    """Whether those of some numbers that are ids are more than there would be by chance, or texts. Short numbers always may be.

    `ids_of_length`: digits of ids → how many there are; one in ten numbers has a certain digit in a certain place.
    """
    lengths = Counter(len(str(number)) for number in numbers if isinstance(number, int) and number > LAST_SHORT)
    by_chance = sum(count * ids_of_length.get(length, 0) / 10**length for length, count in lengths.items())
    texts = sum(isinstance(number, str) for number in known)
    longer = sum(isinstance(number, int) and number > LAST_SHORT for number in known)
    return texts > 0 or longer > 1 + 2 * by_chance


LAST_SHORT = 99
"""The last number that may stand anywhere."""


def _addressed_resource(text: str) -> str | None:
    """The resource of the record whose address a text is. An address in the web is one only below a path of the API."""
    for form in (_ADDRESS, _QUERY) if len(text) <= MOST_OF_ADDRESS else ():
        address = form.fullmatch(text)
        if address is None or (address["scheme"] and not _API.search(text)):
            continue
        if (resource := resource_named(stem_of(address["name"]))) is not None:
            return resource
    return None


def _resource_addressed_in(text: str) -> str | None:
    """The resource of the first record whose address stands in a text, or is the whole of it."""
    if not _DIGITS.search(text):
        return None
    if (resource := _addressed_resource(text)) is not None:
        return resource
    words = (word for word in _WORDS.findall(text) if _KEY.fullmatch(word))
    return next((resource for word in words if (resource := _addressed_resource(word.strip(".,;!?")))), None)


def values_in(path: Path, value: object) -> Iterator[tuple[Path, object]]:
    """Yield the path of each value that is no object and no list, and the value; keys that are numbers are values, too."""
    if isinstance(value, dict):
        has_kind = any(named_kind(member) for member in value.values())
        for name, member in value.items():
            if is_value(name):  # `weights: {7: 3}` says what the values are, and not the keys
                yield (*path, "id") if may_be_count(path[-1]) else path, name
            inner = (*path, ANY_KEY if is_value(name) else name)
            # `{kind: "publication", number: 7}` is no quantity
            yield from values_in((*inner, "id") if has_kind and not isinstance(member, dict | list) else inner, member)
    elif isinstance(value, list):
        for entry in value:  # `order: [7, 3]` is no quantity
            is_ordered = words_of(path[-1])[-1:] in _ORDERS and not isinstance(entry, dict | list)
            yield from values_in((*path, "ids") if is_ordered else path, entry)
    elif isinstance(value, str) and (inside := _decoded(value)) is not None:
        yield from values_in(path, inside)
    elif value not in _NONE or value is False:
        yield path, value


def is_value(key: str) -> bool:
    """Whether a key of an object is a value rather than a name: numbers, one of them behind a name, as in `pub:7`, or several words."""
    return _NUMBERS.fullmatch(key) is not None or _KEY.fullmatch(key) is not None or " " in key


_JSON = ("{", "[")
"""The beginnings of objects and lists."""

_BASE64 = re.compile(r"(?=.{4,500}$)([A-Za-z0-9+/_-]+)={0,2}")


def _decoded(text: str) -> object:
    """The object or list that a text is in JSON, or the number or address of a record that it is in base64; `None` if it is neither."""
    try:
        if text.lstrip()[:1] in _JSON:
            return decode_json(text.encode())
        if encoded := _BASE64.fullmatch(text):
            inside = b64decode(f"{encoded[1]}==", altchars=b"-_" if {*"-_"} & {*text} else None).decode("ascii")
            return inside if _NUMBERS.fullmatch(inside) or _ADDRESS.fullmatch(inside) else None
    except ValueError:
        pass
    return None


def _is_no_id(text: str) -> bool:
    """Whether a text with numbers begins with a date, or is a price."""
    return DATE.match(text) is not None or _DECIMAL.fullmatch(text) is not None


def _numbers(value: object, *, is_title: bool, text_ids: Container[str]) -> Sequence[RecordId]:
    """The ids that a value may be: a known text, else whole numbers from 1 on: one, several in a text, or one behind a kind."""
    if isinstance(value, str):
        if value in text_ids:
            return [value]
        if uuids := [uuid for uuid in _uuids(value) if uuid in text_ids]:
            return uuids
        may_be_named = value[-1:].isdigit() and not is_title and len(value) <= MOST_OF_ADDRESS
        kind_and_number = _KIND_AND_NUMBER.fullmatch(value) if may_be_named else None
        if kind_and_number and names_resource(kind_and_number[1]) and not _addressed_resource(value):
            return [int(kind_and_number[2])]
        are_numbers = _NUMBERS.fullmatch(value) and not _is_no_id(value)
        return [int(number) for number in re.findall("[0-9]*[1-9][0-9]*", value)] if are_numbers else []
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return [value] if type(value) is int and value > 0 else []
