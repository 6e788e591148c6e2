"""The bytes of a file in the target: equal, different, or not fetched, so that nothing is proved of them (I12)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import duckdb
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
        self.progress: list[tuple[int, int]] = []
        self.stores = serve(self._stored)
        self.server = serve(self._answer)

    def _stored(self, request: Received) -> Answer:
        content = self.storage.get(request.path)
        return Answer(status=404) if content is None else Answer(content)

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
        with duckdb.connect() as database:
            create_table(database, PRESENT)
            rows = [
                (1, RECORD, kind, number, "a file", hashlib.sha256(content).hexdigest(), len(content))
                for kind, number, content in planned
            ]
            append_rows(database, PRESENT, rows)
            raw = tmp_path / "raw.parquet"
            database.execute(
                "CREATE TABLE raw AS SELECT ?::BIGINT AS id, ?::JSON AS payload",
                [RECORD, listed or library.record()],
            )
            database.execute(f"COPY (SELECT id, payload::VARCHAR AS payload FROM raw) TO '{raw}' (FORMAT parquet)")
            result = StepResult(plan="plan")
            compared = Contents(
                client_for(library.server.url),
                library.server.url,
                raw,
                on_file=lambda progress: library.progress.append((progress.records, progress.expected)),
            ).check(database, Discrepancies(result, StringIO()))
            return compared, sorted((finding.code, finding.field, finding.found) for finding in result.findings)

    return run


@pytest.mark.parametrize(("kind", "number", "field"), [("cover", None, "cover"), ("asset", SECOND, "files")])
def test_other_bytes_of_the_same_size_are_found(check: Check, kind: str, number: int | None, field: str) -> None:
    found = f"17 bytes with the SHA-256 {hashlib.sha256(ANOTHER).hexdigest()}"
    assert check((kind, number, CONTENT)) == (1, [("differing", field, found)])


@pytest.mark.long
def test_an_expired_address_is_replaced_by_a_fresh_one(check: Check, library: Library) -> None:
    """The storage service gets no sign-in (I2)."""
    del library.storage["/first"]
    library.fresh[FIRST] = "/moved"
    library.storage["/moved"] = CONTENT
    assert check(("asset", FIRST, CONTENT)) == (1, [])
    assert [one.path for one in library.server.received] == [f"/api/v2/assets/{FIRST}"]
    assert [one.path for one in library.stores.received] == ["/first", "/moved"]
    assert not [one for one in library.stores.received if "authorization" in one.headers]


def test_a_file_without_an_address_in_the_listing_is_asked_for(check: Check, library: Library) -> None:
    """A list need not sign an address for every file."""
    listed = library.record()
    del listed["assets"][0]["url"]
    library.fresh[FIRST] = "/first"
    assert check(("asset", FIRST, CONTENT), listed=listed) == (1, [])
    assert [one.path for one in library.server.received] == [f"/api/v2/assets/{FIRST}"]


@pytest.mark.long
def test_fresh_addresses_that_help_are_asked_for_as_often_as_needed(check: Check, library: Library) -> None:
    """A long verification outlives every address of its listing. Only those that do not help are given up after a while."""
    numbers = range(1000, 1000 + MAX_USELESS + 1)
    listed = {"id": RECORD, "assets": [library.asset(number, "/expired") for number in numbers]}
    library.fresh = dict.fromkeys(numbers, "/first")
    assert check(*(("asset", number, CONTENT) for number in numbers), listed=listed) == (len(numbers), [])


def test_the_fresh_address_of_a_cover_is_in_its_record(check: Check, library: Library) -> None:
    """It is another one at each request."""
    listed = library.record()
    library.cover, library.storage["/moved"] = "/moved", library.storage.pop("/cover")
    assert check(("cover", None, ANOTHER), listed=listed) == (1, [])
    assert [one.path for one in library.server.received] == [f"/api/v2/publications/{RECORD}"]


@pytest.mark.parametrize("fresh", [{}, {FIRST: "/nowhere"}], ids=["no fresh address", "nothing there either"])
def test_a_file_that_cannot_be_fetched_is_unread(check: Check, library: Library, fresh: dict[int, str]) -> None:
    """It does not count as compared, and it is a finding: nothing is proved of it."""
    del library.storage["/first"]
    library.fresh = fresh
    assert check(("asset", FIRST, CONTENT), ("asset", SECOND, ANOTHER)) == (1, [("unread", "files", "")])


@pytest.mark.long
def test_a_file_that_its_record_does_not_show_is_unread(check: Check) -> None:
    """Never another file of the record instead."""
    assert check(("asset", 73, CONTENT)) == (0, [("unread", "files", "")])


def test_a_cover_that_is_gone_is_not_compared_with_a_file(check: Check, library: Library) -> None:
    """Somebody removed it: no other file of its record stands for it."""
    compared, findings = check(("cover", None, CONTENT), listed={**library.record(), "cover": None})
    assert (compared, [(code, field) for code, field, _ in findings]) == (0, [("unread", "cover")])
