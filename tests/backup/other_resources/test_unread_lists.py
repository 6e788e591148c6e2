"""What a service keeps at addresses that no backup reads is named: a backup that says complete does not lack it in silence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pipelines.records.shapes.observation import Observer, RecordShape
from pipelines.shapes.description import read_description
from pipelines.shapes.unread_lists import MEMBERS, unread_lists
from tests.backup.other_resources.conftest import Lists, Serve
from tests.cli.command import run

BOOKS = [{"id": 1, "title": "A book"}, {"id": 2, "title": "Another"}]
COLLECTIONS = [{"id": 1, "name": "Novels", "publications": 2}]
LIST = {"properties": {"records": {"type": "array", "items": {"properties": {"id": {}, "note": {}}}}, "meta": {}}}
RECORD = {"properties": {"id": {}, "tags": {"type": "array", "items": {"type": "string"}}}}


def described(*paths: str, schema: Mapping[str, Any] = LIST) -> bytes:
    """A description with a GET for each path."""
    answer = {"responses": {"200": {"content": {"application/json": {"schema": schema}}}}}
    return json.dumps({"openapi": "3.1.0", "paths": {path: {"get": answer} for path in paths}}).encode()


def unread(description: bytes, **records: list[dict[str, Any]]) -> list[str]:
    shapes: dict[str, RecordShape] = {}
    for resource, entries in records.items():
        observer = Observer()
        observer.observe(entries)
        shapes[resource] = observer.shape
    return unread_lists(read_description(description, address=""), shapes)


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/collections/{id}/publications", True),
        ("/collections/{id}/entries", True),
        ("/publications/{id}/assets", False),
        ("/publications/{id}/assets/{asset_id}/versions", True),
        ("/publications/{id}/reviews", True),
        ("/hard_copies/{id}/loans", False),
        ("/quality_reviews", True),
        ("/collections", False),
        ("/publications/all", False),
        ("/publications/newest", True),
    ],
)
def test_lists_are_named_unless_records_show_what_they_have(path: str, named: bool) -> None:
    books = [{**book, "assets": [{"id": 7}]} for book in BOOKS]
    collections = [{**COLLECTIONS[0], "publication_ids": [1]}] if "entries" in path else COLLECTIONS
    names = unread(described(path), publications=books, collections=collections, hard_copies=[])
    shown = path.replace("{id}", ":id").replace("{asset_id}", ":id")
    assert (shown in names) == named


@pytest.mark.parametrize(
    ("members", "row", "named"),
    [
        ([1], {"publication_id": 1, "position": 2}, True),
        ([{"id": 1, "title": "A"}], {"publication_id": 1, "position": 2}, True),
        ([{"publication_id": 1, "position": 2}], {"publication_id": 1, "position": 2}, False),
        ([1], {"id": 1, "publication_id": 1, "collection_id": 2}, False),
        ([1], {"id": 1, "title": "A"}, False),
        ([1], {"id": 1, "publication_id": 1, "created_at": 2, "_links": 3}, False),
        ([{"publication_id": 1}], {"publication_id": 1, "position": 2}, True),
        ([{"name": "A"}], {"name": 1, "publication_id": 1, "role": 2}, True),
    ],
)
def test_a_list_is_named_where_its_rows_say_more_than_the_records_show(
    members: list[Any], row: dict[str, Any], *, named: bool
) -> None:
    """Not where they are the records themselves."""
    rows = {"type": "array", "items": {"type": "object", "properties": {key: {} for key in row}}}
    of_books = {"type": "array", "items": {"type": "object", "properties": {"id": {}, "title": {}}}}
    description = json.loads(described("/collections/{id}/publications", schema=rows))
    description["paths"] |= json.loads(described("/publications", schema=of_books))["paths"]
    shown = unread(
        json.dumps(description).encode(), publications=BOOKS, collections=[{"id": 2, "publications": members}]
    )
    assert shown == (["/collections/:id/publications"] if named else [])


@pytest.mark.parametrize("around", [[], ["records"], ["tasks"], ["data"], ["_embedded", "tasks"]])
def test_the_fields_of_records_are_read_in_any_described_envelope(around: list[str]) -> None:
    schema: dict[str, Any] = {"type": "array", "items": RECORD}
    for name in reversed(around):
        schema = {
            "type": "object",
            "properties": {name: schema, "page": {"type": "object", "properties": {"size": {}}}},
        }
    description = read_description(described("/tasks", schema=schema), address="")
    assert {*description.resources["tasks"].record} == {"id", "tags"}


def test_a_record_and_a_part_of_a_list_are_no_lists() -> None:
    assert unread(described("/publications/{id}/cover", schema=RECORD), publications=BOOKS) == []
    assert unread(described("/publications", "/publications/newest"), publications=BOOKS) == []


@pytest.mark.parametrize(
    ("books", "collections", "named"),
    [
        (BOOKS, COLLECTIONS, True),
        (BOOKS, [], False),
        ([], COLLECTIONS, False),
        (BOOKS, [{"id": 1, "publication_ids": [1]}], False),
        (BOOKS, [{"id": 1, "books": [{"id": 1}]}], False),
        (BOOKS, [{"id": 1, "items": [{"position": 1, "publicationId": 1}]}], False),
        (BOOKS, [{"id": 1, "items": [{"position": 1}]}], True),
        (BOOKS, [{"id": 1, "publications": {"data": [{"type": "publications", "id": "1"}]}}], False),
        (BOOKS, [{"id": 1, "publications": {"data": None}}], True),
        ([{**BOOKS[0], "collection": {"id": 1}}], COLLECTIONS, False),
        ([{**BOOKS[0], "collections": None}], COLLECTIONS, True),
    ],
)
def test_members_that_nothing_shows_are_named_without_a_description(
    books: list[dict[str, Any]], collections: list[dict[str, Any]], named: bool
) -> None:
    assert unread(b"", publications=books, collections=collections) == [MEMBERS] * named


def test_a_backup_says_what_it_did_not_read(serve: Serve) -> None:
    """With the requests that it would take: one of each record or more. Lists below records in words, others by address."""
    collections = [{**COLLECTIONS[0], "id": number} for number in (1, 2)]
    described_lists = described("/collections/{id}/publications", "/quality_reviews")
    service = Lists({"publications": BOOKS, "collections": collections}, described_lists)
    runner, _server = serve(service)
    manifest = runner.back_up("publications", "collections", learn=True).manifest
    assert (manifest.complete, manifest.not_read) == (True, [MEMBERS, "/quality_reviews"])
    in_words = "the publications of each collection"
    assert manifest.notes[0].startswith(f"Not read: {in_words} (at least 2 requests), /quality_reviews. ")
    outcome = run("backup", "new", "--resources", "publications,collections", folder=runner.config.parent)
    assert f"2 publications, 2 collections; not read: {in_words}, /quality_reviews;" in " ".join(outcome.out.split())
    assert in_words in " ".join(run("snapshots", "list", folder=runner.config.parent).out.split())
