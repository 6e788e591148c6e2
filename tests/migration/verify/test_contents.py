"""The bytes of a file in the target: equal, different, or not fetched, so that nothing is proved of them (I12)."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.migration.model.comparison_database import append_rows, create_table
from pipelines.migration.model.findings import StepResult
from pipelines.migration.verify.contents import Contents
from pipelines.migration.verify.discrepancies import Discrepancies
from pipelines.migration.verify.files import PRESENT
from pipelines.service.client import LibraryClient
from pipelines.service.files.signed_urls import MAX_USELESS
from tests.service.scripted import Answer, Received, Script, ScriptedServer

CONTENT, ANOTHER = b"the planned bytes", b"the other content"
RECORD, FIRST, SECOND = 7, 71, 72


class Library:
    """Publication 7 with a cover and two files. `storage`: the bytes at each path; `fresh`: the paths that the API names later."""

    def __init__(self, serve: Callable[[Script], ScriptedServer]) -> None:
        self.storage: dict[str, bytes] = {"/cover": ANOTHER, "/first": CONTENT, "/second": ANOTHER}
        self.fresh: dict[int, str] = {}
        self.cover = "/cover"
        self.stores = serve(self._stored)
        self.server = serve(self._answer)

    def _stored(self, request: Received) -> Answer:
        content = self.storage.get(request.path)
        if content is None:
            return Answer(status=404)
        return Answer(content, headers={"content-encoding": "gzip"} if content.startswith(b"\x1f\x8b") else {})

    def asset(self, number: int, path: str) -> dict[str, Any]:
        """The JSON of a file."""
        file = {"id": f"file{number}", "storage": "store", "metadata": {"size": 17}}
        return {"id": number, "url": f"{self.stores.url}{path}", "file": file}

    def _answer(self, request: Received) -> Answer:
        if request.path.endswith(f"/publications/{RECORD}"):
            return Answer(self.record())
        number = int(request.path.rpartition("/")[2])
        path = self.fresh.get(number)
        return Answer(status=404) if path is None else Answer(self.asset(number, path))

    def record(self) -> dict[str, Any]:
        """The JSON of the publication in the listing."""
        file = {"id": "cover7", "storage": "store", "metadata": {"size": 17}}
        cover = {"url": f"{self.stores.url}{self.cover}", **file}
        return {
            "id": RECORD,
            "cover": cover,
            "assets": [self.asset(FIRST, "/first"), self.asset(SECOND, "/second")],
        }


@pytest.fixture
def library(serve: Callable[[Script], ScriptedServer]) -> Library:
    return Library(serve)


Check = Callable[..., tuple[int, list[tuple[str, str, str | None]]]]


@pytest.fixture
def check(tmp_path: Path, library: Library, client_for: Callable[..., LibraryClient]) -> Check:
    """Compares planned files, each by (kind, id, bytes), with the target: the number compared, and (problem, field, found)."""

    def run(
        *planned: tuple[str, int | None, bytes], listed: dict[str, Any] | None = None
    ) -> tuple[int, list[tuple[str, str, str | None]]]:
        raw = tmp_path / "raw.parquet"
        pq.write_table(pa.table({"id": [RECORD], "payload": [json.dumps(listed or library.record())]}), raw)
        with duckdb.connect() as database:
            create_table(database, PRESENT)
            rows = [
                (1, RECORD, kind, number, "a file", hashlib.sha256(content).hexdigest(), len(content))
                for kind, number, content in planned
            ]
            append_rows(database, PRESENT, rows)
            result = StepResult(plan="plan")
            compared = Contents(
                client_for(library.server.url),
                library.server.url,
                raw,
            ).check(database, Discrepancies(result, StringIO()))
            return compared, sorted((finding.code, finding.field, finding.found) for finding in result.findings)

    return run


@pytest.mark.parametrize(("kind", "number", "field"), [("cover", None, "cover"), ("asset", SECOND, "files")])
def test_other_bytes_of_the_same_size_are_found(check: Check, kind: str, number: int | None, field: str) -> None:
    description = f"17 bytes with the SHA-256 {hashlib.sha256(ANOTHER).hexdigest()}"
    assert check((kind, number, CONTENT)) == (1, [("differing", field, description)])


def test_a_file_that_a_storage_packs_unasked_is_compared(check: Check, library: Library) -> None:
    """By the bytes that it packed."""
    library.storage["/first"] = gzip.compress(CONTENT, mtime=0)
    assert check(("asset", FIRST, CONTENT)) == (1, [])


@pytest.mark.parametrize("listed", ["expired", "none"])
def test_a_fresh_address_is_asked_for(check: Check, library: Library, listed: str) -> None:
    """Of a file at its own address, of a cover in its record. A list need not sign one for every file. The storage gets no sign-in (I2)."""
    record = library.record()
    if listed == "none":
        del record["assets"][0]["url"]
    library.storage = {"/moved": CONTENT, "/another": ANOTHER}
    library.fresh[FIRST], library.cover = "/moved", "/another"
    assert check(("asset", FIRST, CONTENT), ("cover", None, ANOTHER), listed=record) == (2, [])
    asked = [request.path for request in library.server.received]
    assert sorted(asked) == [f"/api/v2/assets/{FIRST}", f"/api/v2/publications/{RECORD}"]
    fetched = {request.path for request in library.stores.received}
    assert fetched == {"/cover", "/moved", "/another"} | ({"/first"} if listed == "expired" else set())
    assert not [request for request in library.stores.received if "authorization" in request.headers]


@pytest.mark.long
def test_fresh_addresses_that_help_are_asked_for_as_often_as_needed(check: Check, library: Library) -> None:
    """A long verification outlives every address of its listing. Only those that do not help are given up after a while."""
    numbers = range(1000, 1000 + MAX_USELESS + 1)
    listed = {"id": RECORD, "assets": [library.asset(number, "/expired") for number in numbers]}
    library.fresh = dict.fromkeys(numbers, "/first")
    assert check(*(("asset", number, CONTENT) for number in numbers), listed=listed) == (len(numbers), [])


@pytest.mark.parametrize("fresh", [{}, {FIRST: "/nowhere"}], ids=["no fresh address", "nothing there either"])
def test_a_file_that_cannot_be_fetched_is_unread(check: Check, library: Library, fresh: dict[int, str]) -> None:
    """It does not count as compared, and it is a finding: nothing is proved of it."""
    del library.storage["/first"]
    library.fresh = fresh
    assert check(("asset", FIRST, CONTENT), ("asset", SECOND, ANOTHER)) == (1, [("unread", "files", "")])


def test_what_its_record_does_not_show_is_unread(check: Check, library: Library) -> None:
    """Somebody removed it: no other file of its record stands for it."""
    listed = {**library.record(), "cover": None}
    findings = [("unread", "cover", ""), ("unread", "files", "")]
    assert check(("asset", 73, CONTENT), ("cover", None, CONTENT), listed=listed) == (0, findings)
