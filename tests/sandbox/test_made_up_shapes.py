"""Shapes that nobody thought of: what is created comes back, and the description fits everything that is sent and answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.state.database import Database
from tests.sandbox.conftest import FakeClock, Service, open_service
from tests.sandbox.shapes import PATHS, description, description_name, fits, ok, shape
from tests.sandbox.test_control import control

NAMES = st.text("abcdefgh_", min_size=1, max_size=6)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
)
ANYTHING = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))
FILLED = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
TEXT_OR_NULL = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
DAYS = st.none() | st.dates().map(str)
BOOKS = st.integers(1, 60)

OWN: list[tuple[dict[str, Any], st.SearchStrategy[Any]]] = [
    ({}, ANYTHING),
    ({"type": ["string", "null"]}, st.none() | TEXTS),
    ({"type": "integer", "minimum": -3, "maximum": 3}, st.integers(-3, 3)),
    ({"enum": ["a", 1, None]}, st.sampled_from(["a", 1, None])),
    ({"type": "array", "items": {"type": "object", "required": ["n"]}, "maxItems": 2}, st.lists(st.builds(dict, n=SCALARS), max_size=2)),
    ({"type": "object", "additionalProperties": {"type": "boolean"}}, st.dictionaries(TEXTS, st.booleans(), max_size=3)),
]  # fmt: skip
"""Schemas of fields that only a shape has, and their values."""

NATIVE: dict[str, dict[str, tuple[st.SearchStrategy[Any], tuple[str, ...]]]] = {
    "authorities": {
        "name": (FILLED, ()),
        "kind": (st.sampled_from(["person", "corporate", "subject"]), ("values",)),
        "variants": (st.lists(FILLED, max_size=3), ("entries",)),
    },
    "hard_copies": {
        "publication_id": (BOOKS, ("text", "object")),
        "location_id": (st.none() | st.integers(1, 6), ("text", "object")),
        "status": (st.sampled_from(["available", "on_loan", "missing"]), ("values",)),
        "acquired_on": (DAYS, ("datetime",)),
        "note": (TEXT_OR_NULL, ()),
    },
    "collections": {
        "name": (FILLED, ()),
        "description": (TEXT_OR_NULL, ()),
        "publication_ids": (st.lists(BOOKS, max_size=3), ("text", "objects", "entries")),
    },
    "tasks": {
        "title": (FILLED, ()),
        "assignee_id": (st.none() | st.integers(1, 8), ("text", "object")),
        "due_on": (DAYS, ("datetime",)),
    },
    "users": {
        "name": (FILLED, ()),
        "roles": (st.lists(FILLED, max_size=3, unique=True), ("entries",)),
    },
    "publications": {
        "title": (FILLED, ()),
        "published_on": (DAYS, ("datetime",)),
        "identifiers": (st.lists(st.fixed_dictionaries({"type": FILLED, "value": FILLED}), max_size=2), ()),
    },
}  # fmt: skip
"""Fields of the sandbox: their values, and their forms beside the plain one."""


@st.composite
def fields(draw: st.DrawFn, resource: str) -> dict[str, dict[str, Any]]:
    """The fields of a made-up shape."""
    own = draw(st.lists(st.sampled_from(range(len(OWN))), max_size=3))
    native = draw(st.lists(st.sampled_from(sorted(NATIVE[resource])), unique=True))
    rules = [{"schema": OWN[number][0]} for number in own] + [draw(_native_rule(resource, each)) for each in native]
    names = draw(st.lists(NAMES, min_size=len(rules), max_size=len(rules), unique=True))
    order = draw(st.permutations(list(zip(names, rules, strict=True))))
    return {name: {**rule, "required": draw(st.booleans())} for name, rule in order}


@st.composite
def _native_rule(draw: st.DrawFn, resource: str, source: str) -> dict[str, Any]:
    form = draw(st.sampled_from(["plain", *NATIVE[resource][source][1]]))
    if form == "values":
        known = {"kind": ["person", "corporate", "subject"], "status": ["available", "on_loan", "missing"]}[source]
        shown = draw(st.lists(NAMES, min_size=3, max_size=3, unique=True))
        return {"from": source, "values": dict(zip(known, shown, strict=True))}
    rule = {"from": source, "form": form}
    if form == "entries":
        rule["member"] = draw(NAMES)
    if form in {"object", "objects"} and draw(st.booleans()):
        rule["write_as"] = f"written_{source}"
    return rule


@st.composite
def sent_and_shown(draw: st.DrawFn, resource: str, rules: Mapping[str, Any], *, every: bool) -> tuple[Any, Any]:
    """A payload, and the values that a record then has to show; an object shows its id at least."""
    sent, shown = {}, {}
    for name, rule in rules.items():
        if not (every and rule["required"]) and draw(st.booleans()):
            continue
        if "from" not in rule:
            strategy = next(values for schema, values in OWN if schema == rule["schema"])
            sent[name] = shown[name] = draw(strategy)
            continue
        value = draw(NATIVE[resource][rule["from"]][0])
        sent[rule.get("write_as", name)] = value if "write_as" in rule else _in_form(rule, value)
        shown[name] = _in_form(rule, value)
    return sent, shown


def _in_form(rule: Mapping[str, Any], value: Any) -> Any:
    if value is None or rule.get("form") == "plain":
        return value
    if "values" in rule:
        return rule["values"][value]
    if isinstance(value, list):
        return [_in_form(rule, each) for each in value]
    forms = {
        "text": str(value),
        "datetime": f"{value}T00:00:00Z",
        "object": {"id": value},
        "objects": {"id": value},
        "entries": {rule.get("member"): value},
    }
    return forms[rule["form"]]


def without_names(rules: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """A record whose references have their id only; each has a name beside it."""

    def reduced(value: Any) -> Any:
        if isinstance(value, list):
            return [reduced(each) for each in value]
        assert value is None or isinstance(value["name"], str)
        return value and {"id": value["id"]}

    return {
        name: reduced(value) if rules.get(name, {}).get("form") in {"object", "objects"} else value
        for name, value in record.items()
    }


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """Sixty real records; the newest record of a list is the first."""
    database = Database()
    service = open_service(database, 60, FakeClock())
    service.vary(order="descending")
    yield service
    database.close()


@pytest.fixture(scope="module")
def v3(service: Service) -> Iterator[httpx.Client]:
    token = control(service, "POST", "tokens", {}).json()["access_token"]
    transport = httpx.WSGITransport(app=service.app)
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"{service.base_url}/api/v3", transport=transport, headers=headers) as client:
        yield client


@pytest.mark.long
@pytest.mark.parametrize("resource", sorted(NATIVE))
@settings(max_examples=20)  # each one reads the whole description
@given(data=st.data())
def test_what_is_sent_comes_back_and_fits_the_description(
    service: Service, v3: httpx.Client, resource: str, data: st.DataObject
) -> None:
    rules = data.draw(fields(resource), "fields")
    wrapped = data.draw(st.booleans(), "wrapped")
    shape(service, {"resources": {resource: {"fields": rules, **({"wrapped": "record"} if wrapped else {})}}})
    document, name, path = description(v3), description_name(resource), PATHS[resource]

    sent, shown = data.draw(sent_and_shown(resource, rules, every=True), "create")
    body = {"record": sent} if wrapped else sent
    fits(document, f"{name}Create", body)
    created = ok(v3.post(path, json=body))
    fits(document, name, created)
    assert set(created) == {"id", *rules}
    assert {each: without_names(rules, created)[each] for each in shown} == shown

    sent, changed = data.draw(sent_and_shown(resource, rules, every=False), "change")
    body = {"record": sent} if wrapped else sent
    fits(document, f"{name}{'Update' if resource == 'publications' else 'Change'}", body)
    after = ok(v3.patch(f"{path}/{created['id']}", json=body))
    newest = ok(v3.get(path, params={"per_page": 1}))
    fits(document, f"{name}List", newest)
    assert newest["records"] == [after]
    assert without_names(rules, after) == {**without_names(rules, created), **changed}
