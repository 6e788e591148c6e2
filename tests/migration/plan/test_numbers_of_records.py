"""Whatever the form, the depth and the name of a reference: a number of the source is not sent as it stands."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipelines.migration.model.publication_type import publication_type
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.plan.build import without_questions
from pipelines.migration.plan.mapping import MappingFile
from pipelines.migration.plan.mapping_proposal import propose, proposed_text
from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.records.shapes.field_names import is_quantity
from tests.migration.plan.learning import learner_between, listing

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
    form, beside = forms
    records = [
        {"id": number, "name": f"N{number}", "title": f"T{number}", name: FORMS[form](ids), "by": FORMS[beside](ids)}
        for number, ids in enumerate(references, 1)
    ]
    assume(resource != PUBLICATIONS or not is_quantity(name))
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        own = listing(folder, resource, records)
        others = {name: listing(folder, name, [{"id": number} for number in IDS]) for name in ("locations", "tasks")}
        library = {**others, resource: own}
        target = listing(folder, "target", [{**record, "id": record["id"] + 100} for record in records])
        read = library if reads_locations else {resource: own}
        learned = learner_between(resource, own, target, library, same_service=True, read=read)
        proposal = propose(learned, "new")
    types = [without_questions(learned.type)]
    if proposal is not None:
        file = MappingFile(Path("map.toml"), proposed_text(None, [proposal], "old", "new"))
        assert proposed_text(file, [proposal], "old", "new") == file.text
        answered = MappingFile(file.path, file.text.replace('= "?"', '= "locations"'))
        assert not answered.questions()
        types += [file.follow(learned.type), answered.follow(learned.type)]
        assert name not in top(question.field for question in file.questions()) or name not in top(types[1].fields)
    for known in types:
        moved = publication_type(STANDARD_KINDS, learned=known) if resource == PUBLICATIONS else known
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
