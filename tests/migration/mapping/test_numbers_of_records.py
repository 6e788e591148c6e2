"""Whatever the form, the depth and the name of a field: no number of the source is sent as it stands, and no text is lost unsaid."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pipelines.migration.model.publication_type import publication_type
from pipelines.migration.model.resource_types import PUBLICATIONS, ResourceType
from pipelines.migration.plan.build import without_questions
from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.records.shapes.field_names import is_quantity
from tests.migration.mapping.learning import file_of, learner_between, learner_of, listing, text_of

Form = Callable[[Sequence[int]], Any]

FORMS: dict[str, Form] = {
    "number": lambda ids: ids[0],
    "decimal": lambda ids: float(ids[0]),
    "text": lambda ids: str(ids[0]),
    "with a sign": lambda ids: f"#{ids[0]}",
    "numbers": list,
    "texts": lambda ids: [str(number) for number in ids],
    "one text": lambda ids: ", ".join(map(str, ids)),
    "lists": lambda ids: [[number] for number in ids],
    "object": lambda ids: {"id": ids[0], "label": "x"},
    "objects": lambda ids: [{"id": str(number)} for number in ids],
    "deep": lambda ids: {"of": {"those": [{"these": number, "note": "x"} for number in ids]}},
    "in an object": lambda ids: {"at": ids[0], "note": "x"},
    "keys": lambda ids: {str(number): True for number in ids},
    "kind and key": lambda ids: {"type": "Location", "key": ids[0]},
    "JSON:API": lambda ids: {"data": {"type": "locations", "id": str(ids[0])}},
    "address": lambda ids: f"https://library.example.org/api/v3/hard_copies/locations/{ids[0]}",
    "path": lambda ids: f"/locations/{ids[0]}",
    "URI": lambda ids: f"gid://library/Location/{ids[0]}",
    "kind and sign": lambda ids: f"Location#{ids[0]}",
    "kind in short": lambda ids: f"loc:{ids[0]}",
    "kind in words": lambda ids: f"see loc-{ids[0]}",
    "query": lambda ids: f"?location={ids[0]}",
    "base64": lambda ids: b64encode(f"Location:{ids[0]}".encode()).decode(),
    "number in base64": lambda ids: b64encode(str(ids[0]).encode()).decode(),
    "JSON": lambda ids: json.dumps({"at": {"those": ids}}),
    "number in objects": lambda ids: {"work": {"number": ids[0]}},
    "negative": lambda ids: -ids[0],
    "in prose": lambda ids: f"Bound with no. {ids[0]}, see there",
    "in letters": lambda ids: f"LIB{ids[0]}p",
    "among others": lambda ids: [ids[0], True, "none", 9000.5],
    "key in brackets": lambda ids: {f"[{ids[0]}]": True},
    "URN": lambda ids: f"urn:library:location:{ids[0]}",
    "kinds": lambda ids: [{"item_type": kind, "item_id": number} for number in ids for kind in ("Location", "Task")],
    "kinds and texts": lambda ids: [{"kind": kind, "number": str(ids[0])} for kind in ("location", "user")],
    "kinds deep": lambda ids: {"of": [{"type": kind, "id": ids[0]} for kind in ("Location", "Task", "Room")]},
    "two kinds": lambda ids: {"of": {way: {"type": "Location", "id": ids[0]} for way in ("from", "to")}},
    "lists of kinds": lambda ids: [[{"type": kind, "id": ids[0]} for kind in ("Location", "Task")]],
    "data": lambda ids: [{"data": {"type": kind, "id": str(ids[0])}} for kind in ("locations", "tasks", "rooms")],
}

BY_KIND = ("kinds", "kinds and texts", "kinds deep", "two kinds", "lists of kinds", "data")

NAMES = (
    *("location", "location_id", "locationIds", "home-location", "Location.ID", "LOCATIONS"),
    *("shelf", "titel_nr", "held_at", "seeAlso", "of", "part-of", "main", "Target"),
    *("position", "call_no", "Year"),
)
"""Some lead to locations by their words, others nowhere; some are those of quantities."""

IDS = range(1, 41)
"""Those of the locations, among them those of every other record here."""

RESOURCES = (PUBLICATIONS, "collections", "tasks", "authorities")


def types_of(
    resource: str, records: Sequence[dict[str, Any]], answer: str, *, reads_locations: bool = True
) -> list[ResourceType]:
    """How a plan moves these records without a mapping file, by the proposed one, and by that with this answer to every question."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source = listing(folder, "own", records)
        other_listings = {
            name: listing(folder, name, [{"id": number} for number in IDS]) for name in ("locations", "tasks")
        }
        library = {**other_listings, resource: source}
        target = listing(folder, "target", [{**record, "id": record["id"] + 100} for record in records])
        read = library if reads_locations else {resource: source}
        learner = learner_between(resource, source, target, library, same_service=True, read=read)
        text = text_of([learner])
        assert text_of([learner], text) == text
    types = [without_questions(learner.type)]
    if f"[{resource}]" in text:
        file, answered = file_of(text), file_of(text.replace('= "?"', f'= "{answer}"'))
        assert not answered.questions()
        types += [file.follow(learner.type), answered.follow(learner.type)]
        assert not any(field.is_open for field in types[1].fields.values())
    if resource == PUBLICATIONS:
        return [publication_type(STANDARD_KINDS, learned=learned) for learned in types]
    return types


@settings(max_examples=150, deadline=None)
@given(
    resource=st.sampled_from(RESOURCES),
    name=st.sampled_from(NAMES),
    forms=st.tuples(st.sampled_from(sorted(FORMS)), st.sampled_from(("number", "in an object", "keys"))),
    references=st.lists(st.lists(st.sampled_from(IDS), min_size=1, max_size=3, unique=True), min_size=1, max_size=6),
    reads_locations=st.booleans(),
)
def test_a_number_of_the_source_is_sent_only_where_it_is_known_what_it_leads_to(
    resource: str, name: str, forms: tuple[str, str], references: list[list[int]], reads_locations: bool
) -> None:
    """Also without a description, where the target has the field in the same form, and by a mapping file with and without its answer.

    Whatever another field beside it has.
    """
    form, second_form = forms
    records = [
        {
            "id": number,
            "name": f"N{number}",
            "title": f"T{number}",
            name: FORMS[form](ids),
            "by": FORMS[second_form](ids),
        }
        for number, ids in enumerate(references, 1)
    ]
    assume(resource != PUBLICATIONS or not is_quantity(name))
    for moved in types_of(resource, records, "locations", reads_locations=reads_locations):
        for record in records:
            form_of_record = moved.form(record)
            names = [field for field in form_of_record.values if name in top(moved.keys_of(field))]
            fields = [moved.fields[field] for field in names]
            sent = {resource for field in fields for resource in field.resources}
            assert sent <= ({"locations", "tasks"} if form in BY_KIND else {"locations"})
            plain = [form_of_record.values[field] for field in names if not moved.fields[field].refers]
            assert not re.search("[0-9]", json.dumps(plain))
            assert sent or name in top(form_of_record.why)


def top(paths: Iterable[str]) -> set[str]:
    """The fields of the record in which these are."""
    return {path.split("/")[0] for path in paths}


MEMBERS = (
    *("note", "kind", "type", "id", "url", "created_at", "links", "location_id", "location", "items", "data"),
    *(
        "attributes",
        "relationships",
        "of",
        "count",
        "at",
        "copies_count",
        "parent",
        "user",
        "label",
        "self",
        "children",
    ),
)
FILLED = ("created_at", "links", "self", "copies_count", "url")
"""Members that a service fills itself in a record."""

leaves = st.sampled_from(("text", "text", "number", True))
trees = st.recursive(
    leaves,
    lambda inner: (
        st.builds(lambda entry: [entry, entry], inner)
        | st.dictionaries(st.sampled_from(MEMBERS), inner, min_size=1, max_size=4)
    ),
    max_leaves=8,
)


def filled(tree: Any, number: int, texts: Iterator[str]) -> Any:
    """The value of this form in the record with a number, whose every text is another one."""
    if isinstance(tree, dict):
        return {name: filled(member, number, texts) for name, member in tree.items()}
    if isinstance(tree, list):
        return [filled(entry, number, texts) for entry in tree]
    return {"text": next(texts), "number": number}.get(tree, tree)


def texts_in(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of what the document does not let a service fill, and of no copy of another record."""
    if isinstance(value, dict):
        names = value.keys() - {"self", "links"} - ({*FILLED} if "id" in value or path == "/attributes" else set())
        for name in names:
            yield from texts_in(f"{path}/{name}", value[name])
    elif isinstance(value, list):
        for entry in value:
            yield from texts_in(path, entry)
    elif isinstance(value, str):
        yield path, value


@settings(max_examples=150, deadline=None)
@given(
    resource=st.sampled_from(RESOURCES),
    forms=st.lists(
        st.dictionaries(st.sampled_from(sorted({*MEMBERS} - {"id", *FILLED})), trees, min_size=1, max_size=5),
        min_size=1,
        max_size=2,
    ),
    answer=st.sampled_from(("locations", "nothing")),
)
@example(PUBLICATIONS, [{"at": "text"}, {"at": {"id": "number", "note": "text"}}], "locations")
@example(PUBLICATIONS, [{"at": {"copies_count": "text"}}, {"at": {"id": "number", "note": "text"}}], "locations")
@example(PUBLICATIONS, [{"at": [{"note": "text"}, {"id": "number", "kind": "text"}]}], "locations")
@example("collections", [{"user": {"id": "number", "note": "text"}}, {"user": ["text", "text"]}], "locations")
@example(PUBLICATIONS, [{"at": {"id": ["number", "number"], "kind": "text", "type": "text"}}], "locations")
@example(PUBLICATIONS, [{"at": {"kind": "text"}}, {"at": {"id": "number"}}], "locations")
@example(
    PUBLICATIONS,
    [{"location": {"note": "text", "id": "number", "kind": {"id": "number", "note": "text"}}}],
    "locations",
)
def test_no_text_of_a_record_is_lost_without_a_word(resource: str, forms: list[dict[str, Any]], answer: str) -> None:
    """Every text at any depth is sent, or it or an object around it is named with the reason (I6). Entries of a list have one form."""
    texts = (f"{letters}." for letters in map("".join, product("abcdefgh", repeat=5)))
    records = [
        {"id": number, "name": "ABCD"[number], **filled(forms[number % len(forms)], number, texts)}
        for number in range(4)
    ]
    for moved in types_of(resource, records, answer):
        for record in records:
            form = moved.form(record)
            named = tuple(f"{path.partition('[')[0]}/" for path in (*form.unsent, *moved.left_out))
            said = json.dumps([form.values, form.empty])
            assert not [
                place
                for place in texts_in("", record)
                if place[1] not in said and not f"{place[0][1:]}/".startswith(named)
            ]


def test_a_reference_whose_ids_say_something_else_is_asked_about_although_it_says_more_of_the_link(
    tmp_path: Path,
) -> None:
    """Taken apart, its id has another path. No publication has these numbers, whatever the name says."""
    records = [{"id": n, "title": "A", "publication": {"id": 100 + n, "role": f"r{n % 2}"}} for n in range(1, 5)]
    learned = learner_of(tmp_path, records, resource="tasks", read=["publications", "users"]).type
    assert learned.parts["publication/id"].leads_to == "?"
