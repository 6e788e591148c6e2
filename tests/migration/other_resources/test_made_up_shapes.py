"""Libraries of made-up shapes move whole, and a comparison that shares no code with Bookferry's says so."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings

from pipelines.drill import drill
from pipelines.settings.config_file import load_settings
from pipelines.store.snapshots.snapshots import Snapshot
from pipelines.store.stores import open_data
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import (
    ALL_RESOURCES,
    Records,
    back_up,
    make_pair,
    records_of,
)
from tests.migration.other_resources.made_up_shapes import (
    DOCUMENTED,
    LINKS,
    NAMES,
    OWN_NAMES,
    OWN_REFERENCES,
    PREVIEW,
    Json,
    made_up_shapes,
)
from tests.migration.other_resources.test_other_resources import NOW
from tests.sandbox.process import SandboxProcess

EXAMPLES = int(os.environ.get("MADE_UP_SHAPES", "3" if "CI" in os.environ else "1"))
"""MADE_UP_SHAPES=30 runs thirty, which takes some ten minutes."""

pytestmark = pytest.mark.timeout(600 + 60 * EXAMPLES)

REFERENCES = {
    "publication_id": "publications",
    "publication_ids": "publications",
    "location_id": "locations",
    "assignee_id": "users",
}
OF_ONE_LIBRARY = ("contributor", "organization", "cover", "assets")
"""Fields of publications that name records and files of their own library; other tests follow them."""
NAMED_BY = {"publications": "title", "locations": "name", "users": "email"}
MAY_BE_NULL = {*DOCUMENTED, *(name for names in PREVIEW.values() for name in names)}
"""Documented fields of publications, in which an empty value means none."""


class Libraries:
    """The two libraries behind a pair, read by the sandbox's own names where that says what an id means."""

    def __init__(self, pair: LibraryPair, shapes: Json) -> None:
        self.pair = pair
        self.shapes = shapes["resources"]
        pair.sandbox.reshape(self.shapes, "library", pair.target, description=shapes["description"])
        self._link(pair.library())

    def _names(self, library: str | None) -> dict[str, dict[int, str]]:
        """Resource → id → the name of that record."""
        own_names = {
            resource: next((key for key, field in self._fields(resource) if field.get("from") == native), native)
            for resource, native in OWN_NAMES.items()
        }
        return {
            resource: {number: record[name] for number, record in records_of(self.pair, resource, library).items()}
            for resource, name in (own_names | NAMED_BY).items()
        }

    def _fields(self, resource: str) -> Iterable[tuple[str, Json]]:
        return self.shapes.get(resource, {}).get("fields", {}).items()

    def _link(self, source: LibraryPair) -> None:
        """Set the references that the sandbox does not know: a circle, a record in itself, forwards and backwards."""
        names = self._names("library")
        records = {resource: records_of(self.pair, resource, "library") for resource in OWN_NAMES}
        for resource in OWN_NAMES.keys() & self.shapes.keys():
            shape, numbers = self.shapes[resource], sorted(names[resource])
            leads_to = {key: led for key in shape["fields"] if (led := _leads_to(resource, key))}
            for place, number in enumerate(numbers[:6] if leads_to else ()):
                change = {key: _reference(key, names[led], place) for key, led in leads_to.items()}
                if shape.get("replaces"):
                    record = records[resource][number]
                    change = {
                        key: record[key] for key, field in self._fields(resource) if not field.get("read_only")
                    } | change
                body = {shape["wrapped"]: change} if "wrapped" in shape else change
                source.call(shape.get("verb", "PATCH"), f"{resource}/{number}", body)

    def leads_to(self, resource: str, key: str) -> str:
        """The resource of the records in a field, by the name that is read or written; empty for any other field."""
        native = (
            field.get("from", "") for name, field in self._fields(resource) if key in (name, field.get("write_as"))
        )
        return _leads_to(resource, key) or REFERENCES.get(next(native, ""), "")

    def dump(self, library: str | None) -> dict[str, list[str]]:
        """What a library says, without ids: references by the titles and names that they lead to."""
        names = self._names(library)
        return {
            resource: sorted(
                json.dumps(dict(self._meaning(resource, record, names)), sort_keys=True)
                for record in records_of(self.pair, resource, library).values()
            )
            for resource in (*NAMES, "publications")
        }

    def _meaning(
        self, resource: str, record: Json, names: Mapping[str, Mapping[int, str]]
    ) -> Iterator[tuple[str, Any]]:
        for key, field in self.shapes[resource]["fields"].items():
            value = record.get(key)
            if field.get("read_only") or value is None or key in OF_ONE_LIBRARY:
                continue
            if value in ("", []) and resource == "publications" and key in MAY_BE_NULL:
                continue
            if key == "categories":
                value = sorted(category["name"] for category in value)
            led_to = names.get(self.leads_to(resource, key))
            if led_to is None:
                yield key, value
            elif isinstance(value, list):
                yield key, sorted(led_to[_id(entry)] for entry in value)
            else:
                yield key, led_to[_id(value)]


def _leads_to(resource: str, key: str) -> str:
    """The resource of the records in a field that only the shape has; empty for any other field."""
    return resource if key in OWN_REFERENCES else LINKS[key][0] if resource == "publications" and key in LINKS else ""


def _reference(key: str, names: Mapping[int, str], place: int) -> Any:
    """What the record at this place refers to: the first two to each other, the third to itself, the others to any."""
    numbers = sorted(names)
    order = (1, 0, 2, 5, 3, 4)
    shape = OWN_REFERENCES[key] if key in OWN_REFERENCES else LINKS[key][1]
    chosen = [numbers[order[place] % len(numbers)], numbers[-1]][: 1 + place % 2]
    kind = shape["schema"]["type"]
    is_object = "object" in (shape["schema"]["items"]["type"] if kind == "array" else kind)
    values = [{"id": number, "name": names[number]} if is_object else number for number in dict.fromkeys(chosen)]
    return values if kind == "array" else values[0]


def _id(value: Any) -> int:
    return int(value["id"] if isinstance(value, dict) else value)


def leaves(value: Any) -> Iterator[str]:
    """Every scalar inside of a value, as text."""
    if isinstance(value, dict):
        for member in value.values():
            yield from leaves(member)
    elif isinstance(value, list):
        for entry in value:
            yield from leaves(entry)
    elif isinstance(value, str) and value[:1] in {"{", "[", '"'}:
        yield from leaves(json.loads(value))
    elif value is not None and value != "":
        yield str(float(value)) if isinstance(value, (int, float)) and not isinstance(value, bool) else _plain(value)


def _plain(value: Any) -> str:
    text = str(value).replace(" ", "T").removesuffix("+00:00").removesuffix("Z").removesuffix("T00:00:00")
    return str(float(text)) if text.isdigit() else text


def assert_staged(snapshot: Snapshot, resource: str, records: Records) -> None:
    """Every scalar of every record stands in a column of its staged rows, ids that the tables name otherwise included."""
    staged = dict[int, set[str]]()
    singular = {"authorities": "authority", "hard_copies": "hard_copy"}.get(resource, resource[:-1])
    for name, table in snapshot.manifest.tables.items():
        if name == resource or name.startswith(f"{singular}_"):
            for row in pq.read_table(snapshot.path / table.path).to_pylist():
                number = row["id" if name == resource else f"{singular}_id"]
                columns = {column: value for column, value in row.items() if column not in {"id", "residue"}}
                staged.setdefault(number, set()).update(leaves(columns))
    for number, record in records.items():
        expected = {*leaves({name: value for name, value in record.items() if name != "id"})}
        assert expected <= staged[number], (resource, sorted(expected - staged[number]), record)


def map_fields(libraries: Libraries, snapshot: Snapshot) -> list[str]:
    """Write the mapping file, and answer its questions as somebody would who knows both libraries; returns the lines that were asked."""
    mapping = libraries.pair.map(snapshot)
    lines, asked = mapping.text.splitlines(), list[str]()
    for question in mapping.questions():
        asked.append(lines[question.line - 1])
        answer = libraries.leads_to(question.resource, question.field) or "nothing"
        line = re.sub(r'(entries.* name = { leads_to = )"[?]"', r'\1"nothing"', asked[-1])
        line = line.replace('leads_to = "?"', f'leads_to = "{answer}"')
        lines[question.line - 1] = re.sub(r'("?[^"{]+"?) = "\?"', r"\1 = \1", line)
    mapping.path.write_text("\n".join(lines), encoding="utf-8")
    second_mapping = libraries.pair.map(snapshot)
    assert (second_mapping.text, second_mapping.questions()) == ("\n".join(lines), [])
    return asked


def move(libraries: Libraries) -> Snapshot:
    """Back up, map, plan, apply and verify; returns the snapshot."""
    pair = libraries.pair
    snapshot = back_up(pair, "run")
    assert snapshot.manifest.complete, snapshot.manifest.problems
    asked = map_fields(libraries, snapshot)
    plan = pair.plan(snapshot, resources=ALL_RESOURCES)
    applied = pair.apply(plan)
    lines = len(pair.map(snapshot).text.splitlines())
    said = f"{len(asked)} questions, {lines} lines, {plan.facts.requests} requests planned, {applied.requests} sent"
    print(*asked, said, sep="\n")  # noqa: T201  seen with -s
    assert applied.failures == [], applied.failures
    assert pair.verify(plan).as_planned
    return snapshot


@contextmanager
def made_libraries(shapes: Json, folder: Path) -> Iterator[Libraries]:
    """A library and an almost empty one, both of these shapes."""
    with SandboxProcess("--tenant=library=real:20", "--tenant=new=real:1", "--requests-per-minute", "0") as sandbox:
        yield Libraries(make_pair(folder, sandbox, "new"), shapes)


def say_forms(libraries: Libraries, shapes: Json) -> None:
    """Write what no description says into the operator's tables: the methods, and the keys around a record."""
    for resource, shape in shapes["resources"].items() if shapes["description"] == "missing" else ():
        said = {"method": shape.get("verb", "PATCH"), "wrapped_in": shape.get("wrapped", "")}
        if resource in NAMES:
            lines = [f"{name} = {json.dumps(value)}" for name, value in said.items()]
            libraries.pair.configure("\n".join([f"[tenants.new.requests.{resource}]", *lines]))


def check(shapes: Json, folder: Path) -> None:
    """Move a library of these shapes and look at everything."""
    with made_libraries(shapes, folder) as libraries:
        say_forms(libraries, shapes)
        pair, before = libraries.pair, libraries.dump(None)
        snapshot = move(libraries)
        for resource in NAMES:
            assert_staged(snapshot, resource, records_of(pair, resource, "library"))
        expected, in_target = libraries.dump("library"), libraries.dump(None)
        for resource in (*NAMES, "publications"):
            missing = sorted({*expected[resource]} - {*before[resource]} - {*in_target[resource]})
            strange = sorted({*in_target[resource]} - {*before[resource]} - {*expected[resource]})
            assert (missing, strange) == ([], []), (resource, missing, strange)
        second_plan = pair.plan(back_up(pair, "second"), resources=ALL_RESOURCES)
        assert second_plan.facts.empty, second_plan.facts.counts
        loaded = load_settings(pair.config)
        drilled = drill(loaded, open_data(loaded), snapshot, now=NOW)
        assert drilled.ok
        assert bool(drilled.lost) == bool(drilled.problems), "a drill asks nobody, and names what it leaves out"


@pytest.mark.long
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
@given(made_up_shapes())
def test_a_library_of_made_up_shapes_moves_whole(shapes: Json) -> None:
    note(json.dumps(shapes))
    with tempfile.TemporaryDirectory() as folder:
        check(shapes, Path(folder))
