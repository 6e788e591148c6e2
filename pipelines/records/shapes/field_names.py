"""What the name of a field says: whether a client sends it, and of a reference, where it leads and which other names it may have."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import lru_cache

from pipelines.records.additional_fields import is_counter, is_managed
from pipelines.records.paths import ATTRIBUTES, DATA, RELATIONSHIPS
from pipelines.records.shapes.observation import ANY_KEY, OTHERS, FieldShape, Kind, RecordShape

_NAMES = {
    "publication": "publications",
    "location": "locations",
    "collection": "collections",
    "authority": "authorities",
    "copy": "hard_copies",
    "hard_copy": "hard_copies",
    "task": "tasks",
    "user": "users",
}
"""Last word of a field's name → the resource of that name."""

NAMES_OF_RECORDS = ("name", "title", "label", "heading")
"""Last words in the name of a field with the name of a record, such as `displayName`."""

_NAMED_AFTER = {
    **_NAMES,
    "book": "publications",
    **dict.fromkeys(
        ("assignee", "owner", "creator", "borrower", "reviewer", "librarian", "contributor", "assigned_to"), "users"
    ),
}
"""The same with words for records that most probably are of that resource: an owner may be an authority, too."""


_OF_ITS_OWN_KIND = frozenset(
    {"parent", "ancestor", "child", "children", "broader", "narrower", "superior", "predecessor", "successor"}
)
"""Words in the name of a field with other records of its own resource."""


def fields_to_send(shape: RecordShape, described: Container[str] = ()) -> dict[str, FieldShape]:
    """The fields of records that a client may send: not filled by the service. `described`: those that it takes."""
    return {
        name: field
        for name, field in shape.fields.items()
        if name != OTHERS and (not is_managed(name) or (name in described and (is_counter(name) or "/" in name)))
    }


def keys_of(name: str) -> Iterator[str]:
    """The keys under which a record may have a field of a payload: `location_id` may be read as `location`, and the other way round."""
    yield name
    if name.endswith("_ids"):
        yield from (f"{name[:-4]}s", re.sub("ys$", "ies", f"{name[:-4]}s"), name[:-4])
    elif name.endswith("_id"):
        yield name[:-3]
    else:
        yield f"{name}_id"
        yield f"{singular(name)}_ids"


def names_own_kind(stem: str) -> bool:
    """Whether a reference of this name leads to a record of the resource that has it."""
    return not _OF_ITS_OWN_KIND.isdisjoint(stem.split("_"))


def reference_stem(path: str) -> str:
    """The words by which a reference is named: neither `id` nor `data` at the end of its path says what it is."""
    return stem_of("/".join(_named_parts(path)))


def is_of_own_kind(path: str) -> bool:
    """Whether a reference leads to a record of the resource that has it, as `parent_id` of a task does.

    What else has a parent or children, such as an entry of a list, need not be of that resource.
    """
    *above, last = _named_parts(path)
    return names_own_kind(stem_of(last)) and {*above} <= {ATTRIBUTES, RELATIONSHIPS}


def _named_parts(path: str) -> list[str]:
    *above, last = path.split("/")
    while above and (last in ("id", DATA)):
        last = above.pop()
    return [*above, last]


def names_doer(name: str) -> bool:
    """Whether a field of this name has the person who made or changed the record: `creator`, `created_by`."""
    stem = stem_of(name)
    return stem.endswith("_by") or resource_named(stem) == "users"


def may_be_count(name: str) -> bool:
    """Whether a whole number in a field of this name may count records instead of naming one: `copies` has no `_id`."""
    return not is_named_as_id(name) and singular(stem_of(name)) != stem_of(name)


def words_of(name: str) -> list[str]:
    """The words of a name in lower case, however it is spelled: `publication_id`, `publicationId`, `publication-id`, `PUBLICATIONID`."""
    return [part for word in _WORD.findall(name) for part in _parted(word.lower())]


@lru_cache(4096)
def in_words(path: str) -> str:
    """A path in one spelling of its names: `lent_to/user_id` for `lentTo/userId`."""
    return "/".join("_".join(words_of(name)) or name for name in path.split("/"))


def _parted(word: str) -> list[str]:
    """`bookid` is two words; `paid` and `valid` are one."""
    ending = re.search("(ids?|nos?|nrs?|refs?|numbers?)$", word)
    return [word[: ending.start()], ending[0]] if ending and names_records(word[: ending.start()]) else [word]


_WORD = re.compile(r"IDs(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")


def is_named_as_id(name: str) -> bool:
    """Whether a name ends in the word `id` or `ids`."""
    return words_of(name)[-1:] in (["id"], ["ids"])


def stem_of(name: str) -> str:
    """The words of the name of a reference, without `id` or `ids` at their end."""
    words = words_of(name)
    return "_".join(words[:-1] if is_named_as_id(name) else words)


def may_name_records(name: str, field: FieldShape, within: str = "") -> bool:
    """Whether a field may have numbers of records, at any depth: by its name or that of a member, in any spelling.

    Numbers, and ids that are texts, count within one library only, so that such a field is sent only where it is known what it leads to.
    `within`: the names of the objects around it: in `borrower: {number: 7}` the number is that of a borrower.
    """
    path = f"{within}_{name}"
    stem, has_numbers = stem_of(name), not {Kind.INTEGER, Kind.NUMBER}.isdisjoint(field.kinds) or field.digits > 0
    has_numbers = has_numbers or any(member == ANY_KEY or member.isdigit() for member in field.members)
    if has_numbers and (is_named_as_id(name) or names_records(stem) or _names_number_of_record(path)):
        return True
    if Kind.TEXT in field.kinds and is_named_as_id(name) and (resource_named(stem) is not None or names_own_kind(stem)):
        return True  # "A-12" is an id, too
    if field.entries is not None and may_name_records(name, field.entries, within):
        return True
    return any(may_name_records(member, inner, path) for member, inner in field.members.items())


def names_records(stem: str) -> bool:
    """Whether a name is that of records, of a known resource or not, in singular or plural."""
    return (
        resource_named(stem) is not None
        or names_own_kind(stem)
        or singular(stem.rsplit("_", maxsplit=1)[-1]) in _RECORDS
    )


_RECORDS = frozenset(
    {
        "record",
        "item",
        "member",
        "holding",
        "person",
        "author",
        "curator",
        "donor",
        "editor",
        "keeper",
        "lender",
        "manager",
        "publisher",
        "supervisor",
        "supplier",
        "translator",
        "asset",
        "file",
        "document",
        "category",
        "organization",
        "reference",
    }
)
"""Words for records that do not say of which resource they are."""


def is_quantity(name: str) -> bool:
    """Whether a whole number in a field of this name counts, measures, orders or dates, and is no number of a record."""
    words = words_of(name)
    if words[-1:] in _COUNTS:  # `edition_no` is a quantity, as `no` alone; `titel_nr` may be the number of a record
        words.pop()
    last = {form for word in words[-1:] for form in (word, singular(word))}
    is_measured = not words or words[0] in _NUMBER_OF or not _QUANTITIES.isdisjoint(last)
    return is_measured and not is_named_as_id(name) and not _names_number_of_record(name)


def _names_number_of_record(path: str) -> bool:
    """Whether the names end in those of records and a word for their number: `book_no`, `item_ref`, `locationRef_value`."""
    words = words_of(path)
    before = list(words)
    while before and singular(before[-1]) in _NUMBERS:
        before.pop()
    return before != words and names_records("_".join(before))


_NUMBERS = frozenset({"identifier", "key", "no", "nr", "num", "number", "pk", "ref", "value"})
"""Words for what names a record within its library."""


_QUANTITIES = frozenset({
    "age", "amount", "cent", "copy", "count", "counter", "day", "depth", "duration", "edition", "extent", "flag", "height", "hour",
    "index", "issue", "length", "limit", "line", "maximum", "minimum", "minute", "month", "order", "page", "part", "percent", "position",
    "price", "priority", "quantity", "rating", "score", "second", "seq", "sequence", "size", "sort", "star", "sum", "total", "version",
    "volume", "week", "weight", "width", "year",
})  # fmt: skip
"""Last words, in singular, of names of plain numbers. None that classifies, or says where something is: a `level` may be a location."""

_NUMBER_OF = ("num", "total")
"""First words of names that say how many there are: `numItems`."""

_COUNTS = (["no"], ["nr"], ["number"])
"""Last words of names whose word before says what is counted."""


def named_kind(value: object) -> str | None:
    """The resource that a text names as the kind of a record, such as `Publication` or `node--publication`."""
    is_name = isinstance(value, str) and re.sub("[-:.]", "_", value).isidentifier()
    return resource_named(stem_of(str(value))) if is_name else None


def kind_beside(name: str, names: Iterable[str], *, in_object: bool = False) -> str:
    """The field with the kind of the record that a field names, such as `subject_type` beside `subject_id`; empty if there is none.

    `location_type` beside `location_id` is the kind of a location. `in_object`: `type` beside `id` counts, too.
    """
    stem = words_of(name)
    while stem and (stem[-1] in ("id", "ids") or singular(stem[-1]) in _NUMBERS):
        stem.pop()
    resource = resource_named("_".join(stem)) if stem else None
    if resource is not None and (resource != "users" or stem[-1] == "user"):
        return ""
    kinds = ([*stem, "type"], [*stem, "kind"], [*stem, "class"]) if stem or in_object else ()
    return next((kind for kind in names if kind != name and words_of(kind) in kinds), "")


def names_same(name: str, other_name: str) -> bool:
    """Whether two names are the same, in singular or plural."""
    return singular(name) == singular(other_name)


def singular(name: str) -> str:
    """A name without the ending of a plural."""
    return re.sub("s$", "", re.sub("ies$", "y", name))


def resource_called(stem: str) -> str | None:
    """The resource whose own name a reference has: it leads there for certain."""
    return _by_last_words(stem, _NAMES)


def resource_named(stem: str) -> str | None:
    """The resource that a reference of this name leads to, most probably: by its last word or two."""
    return _by_last_words(stem, _NAMED_AFTER)


def _by_last_words(stem: str, resources: Mapping[str, str]) -> str | None:
    words = stem.split("_")
    for count in (2, 1):
        resource = resources.get(singular("_".join(words[-count:])))
        if resource is not None:
            return resource
    return None
