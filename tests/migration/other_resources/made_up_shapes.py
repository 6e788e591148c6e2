"""Shapes that nobody made for Bookferry: every undocumented resource with other names, forms, enumerations, and more or fewer fields.

A field keeps a name that people understand: an id is named after the resource that it leads to, or its object has the name of that record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "authorities": {
        "name": ("name", "heading", "label", "preferred_name"),
        "kind": ("kind", "type", "class", "authority_type"),
        "variants": ("variants", "aliases", "other_names", "see_from"),
    },
    "hard_copies": {
        "publication_id": ("publication_id", "publication", "book_id", "book"),
        "location_id": ("location_id", "location", "home_location_id"),
        "barcode": ("barcode", "code", "item_number"),
        "call_number": ("call_number", "shelf_mark", "signature"),
        "status": ("status", "state", "availability"),
        "acquired_on": ("acquired_on", "bought", "accession_date"),
        "note": ("note", "remarks"),
    },
    "collections": {
        "name": ("name", "title", "label"),
        "description": ("description", "summary", "about"),
        "publication_ids": ("publication_ids", "publications", "book_ids", "books"),
    },
    "tasks": {
        "title": ("title", "subject", "name"),
        "description": ("description", "text", "body"),
        "publication_id": ("publication_id", "publication", "book"),
        "assignee_id": ("assignee_id", "assignee", "assigned_to", "user_id"),
        "due_on": ("due_on", "due", "deadline"),
    },
}
"""Resource → the sandbox's own field → names that it may have."""

PREVIEW = {
    "published_on": ("published_on", "publication_date"),
    "abstract": ("abstract", "summary"),
    "publishable_type": ("publishable_type", "document_type"),
}
"""The same of publications, as a later preview of version 3 might name them."""

DOCUMENTED = (
    *("title", "authors", "identifiers", "categories", "contributor", "organization"),
    *("cover", "assets", "assets_attributes"),
)
"""Fields of publications that keep their names."""

NEEDED = {"authorities": {"name"}, "hard_copies": {"publication_id"}, "collections": {"name"}, "tasks": {"title"}}
"""Fields without which no record is told from another, or made."""

FORMS: dict[str, tuple[str, ...]] = {
    "publication_id": ("plain", "text", "object"),
    "location_id": ("plain", "text", "object"),
    "assignee_id": ("plain", "text", "object"),
    "publication_ids": ("plain", "objects"),
    "acquired_on": ("plain", "datetime"),
    "due_on": ("plain", "datetime"),
    "variants": ("plain", "entries"),
}
WORDS = {
    "kind": {"person": "Person", "corporate": "Organisation", "subject": "Topic"},
    "status": {"available": "IN", "on_loan": "OUT", "missing": "LOST"},
}

ADDED: dict[str, Json] = {
    "language": {"schema": {"type": ["string", "null"]}, "seed": ["en", "de", None, "el"]},
    "rank": {"schema": {"type": "integer"}, "seed": [1, 2, 3]},
    "weight": {"schema": {"type": ["number", "null"]}, "seed": [0.5, None, 12]},
    "is_public": {"schema": {"type": "boolean"}, "seed": [True, False]},
    "reviewed_on": {"schema": {"type": ["string", "null"], "format": "date"}, "seed": ["2020-02-29", None]},
    "tags": {"schema": {"type": "array", "items": {"type": "string"}}, "seed": [["rare"], [], ["old", "torn"]]},
    "sizes": {"schema": {"type": "array", "items": {"type": "integer"}}, "seed": [[3, 1], [2]]},
    "place": {
        "schema": {"type": "object", "properties": {"row": {"type": "integer"}, "side": {"type": "string"}}},
        "seed": [{"row": 1, "side": "left"}, {"row": 2, "side": "right"}],
    },
    "events": {
        "schema": {"type": "array", "items": {"type": "object"}},
        "seed": [[{"what": "bought", "year": 1999}], [{"what": "bound", "year": 2001}, {"what": "lost", "year": 2010}]],
    },
    "mixed": {"schema": {}, "seed": ["seven", 7, None, [7], "", []]},
    "nickname": {"schema": {"type": ["string", "null"]}, "seed": ["", "Bo", None]},
    "marks": {"schema": {"type": "array", "items": {"type": "string"}}, "seed": [[], ["stamp"]]},
    "created_at": {
        "schema": {"type": "string", "format": "date-time"},
        "seed": ["2019-05-01T10:00:00Z"],
        "read_only": True,
    },
}
"""Fields that the sandbox does not have, with the values of the records that are there."""


ID: Json = {"schema": {"type": ["integer", "null"]}, "seed": [None]}
IDS: Json = {"schema": {"type": "array", "items": {"type": "integer"}}, "seed": [[]]}
OBJECT: Json = {
    "schema": {"type": ["object", "null"], "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}},
    "seed": [None],
}
OBJECTS: Json = {"schema": {"type": "array", "items": OBJECT["schema"]}, "seed": [[]]}

OWN_REFERENCES: dict[str, Json] = {
    "parent_id": ID,
    "broader": OBJECT,
    "child_ids": IDS,
    "related": OBJECTS,
}
"""Fields with other records of the same resource; `related` says so by the names in its objects only."""

OWN_NAMES = {"authorities": "name", "collections": "name", "tasks": "title", "publications": "title"}
"""Resource with such fields → the sandbox's own field with the name of a record."""

LINKS: dict[str, tuple[str, Json]] = {
    "shelf_location_id": ("locations", ID),
    "collection_ids": ("collections", IDS),
    "open_task": ("tasks", OBJECT),
    "reviewing_user_id": ("users", ID),
    "subject_authorities": ("authorities", OBJECTS),
}
"""Fields of publications with records of other resources, most of which are written later."""


def own_references(draw: st.DrawFn, resource: str) -> Json:
    """Some fields with records of the same resource."""
    names = st.sets(st.sampled_from(sorted(OWN_REFERENCES)), max_size=2)
    return {name: OWN_REFERENCES[name] for name in sorted(draw(names))} if resource in OWN_NAMES else {}


def field_name(draw: st.DrawFn, native: str, names: tuple[str, ...], *, described: bool) -> tuple[str, Json]:
    """A field of the sandbox under another name and in another form."""
    field: Json = {"from": native}
    name = draw(st.sampled_from(names))
    form = draw(st.sampled_from(FORMS.get(native, ("plain",))))
    if form != "plain":
        field["form"] = form
    if form == "entries":
        field["member"] = draw(st.sampled_from(("label", "value")))
    if form in {"object", "objects"} and described and draw(st.booleans()):
        stem = name.removesuffix("_ids").removesuffix("_id").removesuffix("s")
        field["write_as"] = f"{stem}_ids" if form == "objects" else f"{stem}_id"
    if native in WORDS and draw(st.booleans()):
        field["values"] = WORDS[native]
    return name, field


@st.composite
def resource_shapes(draw: st.DrawFn, resource: str, *, described: bool) -> Json:
    """One resource. `described`: whether a description says what nothing else could, such as other names in payloads."""
    fields: Json = {}
    for native, names in NAMES[resource].items():
        needed = native in NEEDED[resource]
        if needed or draw(st.integers(0, 5)):
            name, fields_of = field_name(draw, native, names, described=described)
            fields[name] = {**fields_of, "required": True} if needed and draw(st.booleans()) else fields_of
    for name in draw(st.sets(st.sampled_from(sorted(ADDED)), max_size=4)):
        fields[name] = ADDED[name]
    fields |= own_references(draw, resource)
    shape: Json = {"fields": fields, "answer": draw(st.sampled_from(("record", "id")))}
    shape["status"] = draw(st.sampled_from((200, 201)))
    shape["verb"] = draw(st.sampled_from(("PATCH", "PUT")))
    shape["replaces"] = shape["verb"] == "PUT" and draw(st.booleans())
    if draw(st.booleans()):
        shape["wrapped"] = {"authorities": "authority", "hard_copies": "hard_copy"}.get(resource, resource[:-1])
    return shape


@st.composite
def publication_shapes(draw: st.DrawFn) -> Json:
    """Publications of another preview of version 3: some fields renamed, some added."""
    fields: Json = {name: {"from": name} for name in DOCUMENTED}
    fields |= {draw(st.sampled_from(names)): {"from": native} for native, names in PREVIEW.items()}
    fields |= {name: ADDED[name] for name in draw(st.sets(st.sampled_from(sorted(ADDED)), max_size=4))}
    fields |= {name: LINKS[name][1] for name in draw(st.sets(st.sampled_from(sorted(LINKS)), max_size=3))}
    return {"fields": fields | own_references(draw, "publications")}


@st.composite
def made_up_shapes(draw: st.DrawFn) -> Json:
    """The shapes of a whole library, described, or not, or wrongly."""
    description = draw(st.sampled_from(("follows", "missing", "lies")))
    described = description != "missing"
    resources = {resource: draw(resource_shapes(resource, described=described)) for resource in NAMES}
    told = _lie(draw, resources) if description == "lies" else description
    return {"description": told, "resources": {**resources, "publications": draw(publication_shapes())}}


LIES: tuple[Json | None, ...] = (None, {"type": "integer"}, {"type": "string", "enum": ["one", "two"]})
"""What a description may say of a field: nothing, another type, values that it does not have."""


def _lie(draw: st.DrawFn, resources: Mapping[str, Json]) -> Json:
    """A description that is wrong about one field."""
    resource = draw(st.sampled_from(sorted(resources)))
    fields = resources[resource]["fields"]
    name = draw(st.sampled_from(sorted(name for name, field in fields.items() if not field.get("read_only"))))
    return {"lies": {resource: {name: draw(st.sampled_from(LIES))}}}
