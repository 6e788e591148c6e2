"""First contact: the shapes of a service that nobody described are learned from its description and its records, and compared by night."""

from __future__ import annotations

import json
import re
import resource as limits
import time

import pytest

from pipelines.shapes.description import MAX_STEPS, read_description
from pipelines.shapes.documents import MAX_BYTES, MAX_NODES
from pipelines.store.catalogue import open_catalogue
from tests.backup.other_resources.conftest import Lists, Serve, rows
from tests.cli.command import run

AUTHORITIES = [{"id": number, "name": f"Name {number}", "type": "Organisation"} for number in range(1, 4)]
COPIES = [{"id": number, "location": {"id": 5, "name": "Main"}, "due": "2026-01-31"} for number in range(1, 4)]
PEOPLE = [{"id": 1, "email": "ada@library.example", "name": "Ada", "ratings": {"Grace Hopper": 5}, "phone": "555-0100"}]

DESCRIPTION = b"""
swagger: "2.0"
basePath: /api/v3
paths:
  /authorities:
    get:
      parameters: [{name: page, in: query}]
      responses: {"200": {schema: {properties: {records: {type: array, items: {$ref: "#/definitions/Authority"}}}}}}
    post:
      parameters:
        - {name: body, in: body, schema: {properties: {authority: {$ref: "#/definitions/NewAuthority"}}}}
  /authorities/{id}:
    put:
      parameters:
        - {name: body, in: body, schema: {$ref: "#/definitions/NewAuthority"}}
definitions:
  Authority:
    allOf:
      - $ref: "#/definitions/NewAuthority"
      - properties: {id: {type: integer, readOnly: true}}
  NewAuthority:
    type: object
    required: [type]
    properties:
      name: {type: string}
      type: {type: string, oneOf: [{const: Person}, {enum: [Organisation]}]}
"""


def test_the_next_night_says_what_changed(serve: Serve) -> None:
    """The service renames a field, adds one, and demands one: the backup is complete, its notes say so, and queries span both nights."""
    service = Lists(
        {"authorities": [{**authority, "kind": "corporate"} for authority in AUTHORITIES], "hard_copies": COPIES},
        DESCRIPTION,
    )
    runner, _server = serve(service)
    first = runner.back_up("authorities", "hard_copies", run="first", learn=True)
    assert first.manifest.news == []
    service.lists["authorities"] = [{**authority, "notes": [1, "two"]} for authority in AUTHORITIES]
    service.lists["hard_copies"] = [{**copy, "due": "soon"} for copy in COPIES]
    service.description = DESCRIPTION.replace(b"required: [type]", b"required: [type, name]").replace(b"Person, ", b"")
    second = runner.back_up("authorities", "hard_copies", run="second", learn=True)
    assert second.manifest.complete
    of_description, of_copies, of_authorities = second.manifest.news
    since = first.manifest.snapshot
    assert of_copies == f"NEW: hard_copies changed since {since}: `due` is text now, before it was date."
    assert of_authorities == (
        f"NEW: authorities changed since {since}: new field `notes` (list, in 3 of 3); "
        "no record has `kind` any more (before, 3 of 3 had it)."
    )
    assert of_description == (
        "NEW: the service's description changed: other fields or values of authorities (`bookferry describe` shows it)."
    )
    third = runner.back_up("authorities", "hard_copies", run="third", learn=True)
    assert third.manifest.news == []
    with runner.library() as library, open_catalogue(library.data) as database:
        kinds = database.execute("SELECT kind, type, notes FROM authorities_history WHERE id = 1 ORDER BY snapshot")
        assert kinds.fetchall() == [
            ("corporate", "Organisation", None),
            (None, "Organisation", '[1,"two"]'),
            (None, "Organisation", '[1,"two"]'),
        ]
        due = database.execute("SELECT due, location_id, location_name FROM hard_copies WHERE id = 1").fetchall()
        assert due == [("soon", 5, "Main")]


def test_a_form_is_read_field_by_field() -> None:
    """Swagger 2 as services in Ruby generate it: `in: formData`, lists and objects in brackets."""
    names = (
        "{name: 'collection[name]', in: formData, required: true, type: string}",
        "{name: 'collection[publication_ids][]', in: formData, type: array, items: {type: integer}}",
        "{name: 'collection[labels][][text]', in: formData, type: string}",
    )
    text = f"paths: {{/collections: {{post: {{parameters: [{', '.join(names)}]}}}}}}"
    described = read_description(text.encode(), address="x")
    create = described.resources["collections"].create
    assert create is not None
    assert (create.wrapped_in, create.required) == ("collection", ["name"])
    types = {name: (field.types, [*(field.entries or field).members]) for name, field in create.fields.items()}
    assert types == {"name": (["string"], []), "publication_ids": (["array"], []), "labels": (["array"], ["text"])}


HOSTILE = [
    b"",
    b"null",
    b"<!DOCTYPE html><title>Sign in</title>",
    b"paths: [",
    b"paths: {}",
    b"[" * 500_000,
    b"{a: " * 200_000,
    b"- " * 300_000,
    b'{"paths":' * 100_000,
    b"\x00\xff\xfe" * 100,
    b"paths: &p {/authorities: *p}",
    b"x: !!python/object/apply:os.system ['touch /tmp/owned']\npaths: {}",
    b"paths: {/authorities: {get: {responses: {'200': {$ref: 'https://elsewhere.example/a.yaml'}}}}}",
    b"paths: {/authorities: {get: {responses: {'200': {$ref: '/etc/passwd'}}}}}",
    b"paths: {/authorities: {post: {requestBody: {$ref: '#/paths'}}, get: 7, put: [], patch: null}, 7: {get: {}}, [a]: 1}",
    b"paths: {/authorities: {get: {responses: {'200': {schema: {$ref: '#/a'}}}}}}\na: {allOf: [{$ref: '#/a'}, {$ref: '#/a'}]}",
    b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (c + 1, c + 1, b",".join([b"*%c" % c] * 9)) for c in range(97, 110))
    + b"paths: {/authorities: {post: {parameters: *n}}}",
    b"paths:\n" + b"".join(b"  /p%d: {get: {summary: a page}}\n" % number for number in range(20_000)),
    b"paths: {/authorities: {post: {requestBody: {content: {a: {schema: {properties: {%s}}}}}}}}"
    % b",".join(b"k%d: {type: %s}" % (number, b"x" * 50) for number in range(5_000)),
    b"paths: {/authorities: {get: {}}}\nrest: '" + b"x" * (2 * MAX_BYTES) + b"'",
]


@pytest.mark.parametrize("description", HOSTILE, ids=range(20))
def test_a_hostile_description_is_read_in_little_time_and_memory(description: bytes) -> None:
    """I13: no crash, and a sentence about what could not be read."""
    begun, memory = time.process_time(), limits.getrusage(limits.RUSAGE_SELF).ru_maxrss
    parsed_description = read_description(description, address="https://library.example/api/v3/swagger.yaml")
    assert time.process_time() - begun < 5  # two seconds on a quiet machine
    assert limits.getrusage(limits.RUSAGE_SELF).ru_maxrss - memory < 50 * 1024
    assert parsed_description.problem or parsed_description.notes or parsed_description.operations
    assert len(json.dumps(parsed_description.problem)) < 500


@pytest.mark.parametrize("number", [2, 5, 12, 19])
def test_a_hostile_description_costs_no_backup(serve: Serve, number: int) -> None:
    """I13: no request to another host."""
    runner, server = serve(Lists({"authorities": AUTHORITIES}, HOSTILE[number]))
    manifest = runner.back_up("authorities", learn=True).manifest
    assert manifest.complete
    assert {request.path for request in server.received} <= {"/api/v3/authorities", "/api/v3/swagger.yaml", "/api"}


def test_the_limits_of_a_description_are_named() -> None:
    """Beyond a limit, the message says which."""
    about = {"address": "a"}
    assert f"at most {MAX_BYTES:,}" in read_description(b"x" * (MAX_BYTES + 1), **about).problem
    assert f"more than {MAX_NODES:,} values" in read_description(b"[" + b"a," * MAX_NODES + b"]", **about).problem
    looped = (
        b"paths: {/authorities: {get: {responses: {'200': {schema: {$ref: '#/a'}}}}}}\na: {allOf: [%s]}"
        % b",".join(b"{properties: {x%d: {$ref: '#/a'}}}" % number for number in range(200))
    )
    assert read_description(looped, **about).notes == [f"Reading stopped after {MAX_STEPS:,} parts."]


def test_a_description_is_read_to_the_depth_of_the_records_and_less_deep_where_its_schemas_are_circles() -> None:
    about = {"address": "a"}
    schema = b"{type: integer}"
    for number in range(8):
        schema = b"{type: object, properties: {x%d: %s}}" % (number, schema)
    path = b"paths: {/authorities: {post: {requestBody: {content: {json: {schema: %s}}}}}}"
    field = read_description(path % schema, **about).resources["authorities"].create
    assert field is not None
    depth, members = 0, field.fields
    while members:
        depth, members = depth + 1, next(iter(members.values())).members
    assert depth == 7  # the first is a key around the body
    circle = b"\na: {properties: {%s}}" % b", ".join(b"x%d: {$ref: '#/a'}" % number for number in range(9))
    of_circles = read_description(path % b"{$ref: '#/a'}" + circle, **about)
    assert (of_circles.notes, bool(of_circles.resources)) == ([], True)


def test_describe_names_every_field_and_its_source(serve: Serve) -> None:
    """`describe` shows what the description says, what the records have, and where a backup keeps it; before a backup, too."""
    runner, server = serve(Lists({"authorities": AUTHORITIES, "hard_copies": COPIES, "users": PEOPLE}, DESCRIPTION))
    first = run("describe", "new", folder=runner.config.parent)
    assert "authorities  3 records of one page of the service" in first.out
    assert re.search(r"type +│ text +│ string: Person, Organisation; needed +│", first.out)
    assert "collections  no record was seen" in first.out
    assert f"{len(server.received)} requests." in first.out
    runner.back_up("authorities", "hard_copies", learn=True)
    second = run("describe", "new", folder=runner.config.parent)
    assert "column location_id, observed" in second.out
    assert "column type, observed" in second.out


def test_a_report_has_no_value(serve: Serve) -> None:
    """The document for an issue has shapes and counts: no value of a record, no name of a person, no address, no secret."""
    runner, server = serve(Lists({"authorities": AUTHORITIES, "hard_copies": COPIES, "users": PEOPLE}, DESCRIPTION))
    outcome = run("describe", "new", "--json", folder=runner.config.parent)
    text, report = outcome.out, outcome.document
    assert report["resources"]["authorities"]["fields"]["type"] == {"seen": 3, "kinds": {"text": 3}}
    assert report["resources"]["authorities"]["create"]["required"] == ["type"]
    secrets = [
        "Grace",
        "Hopper",
        "Ada",
        "555",
        "Main",
        "Name 1",
        "2026-01-31",
        server.url,
        "127.0.0.1",
        "a-token",
        "new",
    ]
    assert [word for word in secrets if word in text] == []


def test_lists_that_version_2_does_not_document_are_named_and_can_be_read(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`doctor` asks for them and says what to write; a description that has them makes each backup say that it reads none of them."""
    sign_in = {"TEST_USER": "somebody", "TEST_PASSWORD": "a-password-that-occurs-nowhere-else"}
    for name, value in sign_in.items():
        monkeypatch.setenv(name, value)
    books = [{"id": 1, "title": "A title"}]
    copies = {
        "get": {"responses": {"200": {"content": {"application/json": {"schema": {"type": "array", "items": {}}}}}}}
    }
    description = json.dumps({"openapi": "3.1.0", "paths": {"/hard_copies": copies}}).encode()
    runner, _server = serve(Lists({"publications": books, "hard_copies": COPIES}, description))
    folder = runner.config.parent
    described = run("describe", "old", folder=folder, variables=sign_in)
    assert "locations version 2 documents no list of them (the service answered 404)" in " ".join(described.out.split())
    first = runner.back_up("publications", tenant="old", run="first", learn=True).manifest
    assert (first.complete, first.not_read) == (True, ["/hard_copies"])
    assert "name them in `resources`" in first.notes[0]

    examined = run("doctor", "old", "--json", folder=folder, variables=sign_in).document["tenants"][0]["checks"]
    [lists] = [check for check in examined if check["name"] == "other lists"]
    assert lists["status"] == "warning"
    assert 'resources = ["publications", "hard_copies"] into [tenants.old]' in lists["todo"]

    runner.config.write_text(
        runner.config.read_text().replace("[tenants.old]", '[tenants.old]\nresources = ["publications", "hard_copies"]')
    )
    second = runner.back_up("publications", "hard_copies", tenant="old", run="second", learn=True)
    assert (second.manifest.complete, second.manifest.not_read) == (True, [])
    assert second.counts == {"publications": 1, "hard_copies": 3}
    assert [row["location_name"] for row in rows(second, "hard_copies")] == ["Main"] * 3
