"""Lists at an address of their own of each record, which `nested` of a tenant names: they are read, proved and staged as any other list."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pipelines.store.catalogue import open_catalogue
from pipelines.store.maintenance.differences import compare
from pipelines.store.maintenance.verification import verify
from tests.backup.other_resources.conftest import TwoVersionRunner, rows
from tests.cli.command import BOOKFERRY, PATIENCE, environment, run
from tests.service.scripted import Answer, Received, ScriptedServer

Serve = Callable[..., tuple[TwoVersionRunner, ScriptedServer]]
NESTED = 'nested = ["collections/publications"]'
BOOKS = [{"id": number, "title": f"Book {number}"} for number in range(1, 141)]
MEMBERS: dict[str, list[Any]] = {
    "1": BOOKS[:120],
    "2": [],
    "3": [{"id": 900 + number, "publication_id": number, "note": "n"} for number in (7, 5)],
    "A-1": [BOOKS[6]],
}
PATH = "/api/v3/collections/{}/publications"


class Library:
    """Books, collections that do not show what they have, and the list of each collection; `refuse`: paths that are 500."""

    def __init__(self) -> None:
        self.members, self.refused = dict(MEMBERS), dict[str, int]()
        self.before: Callable[[str], None] = lambda _name: None

    def __call__(self, request: Received) -> Answer:
        """The answer to one request."""
        name = request.path.removeprefix("/api/v3/")
        self.before(f"{name}?{request.query.get('page')}")
        names = [{"id": int(key) if key.isdigit() else key, "name": f"Collection {key}"} for key in self.members]
        lists = {"publications": BOOKS, "collections": names} | {
            f"collections/{key}/publications": members for key, members in self.members.items()
        }
        if name not in lists or name in self.refused:
            return Answer({"error": {"code": "RecordNotFound"}}, status=self.refused.get(name, 404))
        page, size = int(request.query.get("page", "1")), int(request.query.get("per_page", "25"))
        records = lists[name][(page - 1) * size : page * size]
        return Answer({"records": records}, headers={"X-Total": str(len(lists[name]))})


@pytest.fixture
def library() -> Library:
    return Library()


def test_each_list_is_read_proved_and_staged(serve: Serve, library: Library) -> None:
    runner, server = serve(library, NESTED)
    snapshot = runner.back_up("publications", "collections")
    manifest = snapshot.manifest
    assert (manifest.complete, manifest.not_read, manifest.problems) == (True, [], [])
    facts = manifest.resources["collection_publications"]
    assert (facts.records, facts.x_total, facts.pages, facts.requests) == (123, 123, 6, 6)
    asked = [request.path for request in server.received]
    assert [asked.count(PATH.format(key)) for key in MEMBERS] == [3, 1, 1, 1]
    assert manifest.requests == len(server.received)
    members = [
        (row["collection_id"], row["position"], row["publication_id"])
        for row in rows(snapshot, "collection_publications")
    ]
    assert members == [
        *((1, position, position + 1) for position in range(120)),
        *((3, 0, 7), (3, 1, 5), (None, 0, 7)),
    ]
    raw = rows(snapshot, "raw_collection_publications")
    assert {(row["owner"], row["id"]) for row in raw[-3:]} == {("3", 907), ("3", 905), ("A-1", 7)}
    assert '"note": "n"' in raw[-2]["payload"]
    assert manifest.residue["collection_publications"] == {"note": 2}
    with runner.library() as backup:
        checked = verify(backup.data, snapshot.key, now=datetime(2026, 11, 27, tzinfo=UTC))
        with open_catalogue(backup.data) as database:
            tables = ("collection_publications", "raw_collection_publications_history")
            counts = [database.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0] for table in tables]
            unread = database.execute("SELECT table_name FROM tables_read WHERE NOT read AND table_name LIKE 'coll%'")
            assert (checked.problems, counts, unread.fetchall()) == ([], [123, 123], [])


def test_a_night_later_the_difference_is_in_the_list_of_its_record(serve: Serve, library: Library) -> None:
    """The same publication is in another collection, too."""
    runner, _server = serve(library, NESTED)
    first = runner.back_up("publications", "collections", run="first")
    library.members |= {"1": BOOKS[:119], "2": [BOOKS[6]]}
    second = runner.back_up("publications", "collections", run="second")
    with runner.library() as backup:
        differences = compare(backup.data, first, second).resources
    found = differences.pop("collection_publications")
    assert (found.added_ids, found.removed_ids, found.changed) == (["2/7"], ["1/120"], 0)
    assert not any(other.different for other in differences.values())


@pytest.mark.parametrize("status", [403, 404])
def test_a_list_that_cannot_be_read_makes_the_snapshot_partial_by_the_id_of_its_record(
    serve: Serve, library: Library, status: int
) -> None:
    library.refused["collections/3/publications"] = status
    runner, _server = serve(library, NESTED)
    manifest = runner.back_up("publications", "collections").manifest
    [problem] = manifest.problems
    assert problem.startswith("collection_publications: collection 3: could not be read.")
    assert (manifest.complete, manifest.resources["collection_publications"].records) == (False, 121)
    library.refused |= {f"collections/{key}/publications": 404 for key in MEMBERS}
    snapshot = runner.back_up("publications", "collections", run="none")
    assert (snapshot.manifest.complete, [*snapshot.manifest.unreadable]) == (False, ["collection_publications"])
    assert snapshot.manifest.not_read == ["/collections/:id/publications"]
    assert "take it out of `nested`" in snapshot.manifest.problems[0]
    assert len(rows(snapshot, "collections")) == len(MEMBERS)


def test_a_killed_backup_reads_no_list_twice(serve: Serve, library: Library) -> None:
    """I9: with SIGKILL in the second page of a list, and again in another list."""
    runner, server = serve(library, f'{NESTED}\nresources = ["publications", "collections"]')
    for killed_at in ("collections/1/publications?2", "collections/3/publications?1"):
        with subprocess.Popen([*BOOKFERRY, "backup", "new"], cwd=runner.config.parent, env=environment()) as process:
            library.before = lambda name, at=killed_at, run=process: run.kill() if name == at else None
            assert process.wait(PATIENCE) == -signal.SIGKILL
    library.before = lambda _name: None
    done = run("backup", "new", "--json", folder=runner.config.parent)
    asked = [(request.path, request.query.get("page")) for request in server.received]
    assert [asked.count((PATH.format(key), "1")) for key in MEMBERS] == [1, 1, 2, 1]
    assert [asked.count((PATH.format("1"), page)) for page in ("2", "3")] == [2, 1]
    assert (done.status, done.document["complete"], done.document["counts"]["collection_publications"]) == (
        0,
        True,
        123,
    )


def test_a_list_that_changes_while_it_is_read_is_read_again(serve: Serve, library: Library) -> None:
    def change(name: str) -> None:
        if name == "collections/1/publications?2":
            library.members["1"] = [*BOOKS[70:], *BOOKS[:69]]
            library.before = lambda _name: None

    library.members["1"] = BOOKS[::-1][:60] + BOOKS[:60]  # no order of ids
    library.before = change
    runner, _server = serve(library, NESTED)
    snapshot = runner.back_up("publications", "collections")
    members = [row["publication_id"] for row in rows(snapshot, "collection_publications") if row["collection_id"] == 1]
    assert (snapshot.manifest.complete, members) == (True, [book["id"] for book in library.members["1"]])


@pytest.mark.parametrize(
    ("nested", "said"),
    [
        (
            'nested = ["collections/loans"]',
            "collections/loans: not a list of each record that can be read; those are",
        ),
        (f'{NESTED}\nresources = ["publications"]', "collections/publications, but not collections in resources"),
    ],
)
def test_an_unknown_list_is_refused(tmp_path: Path, nested: str, said: str) -> None:
    TwoVersionRunner.at(tmp_path, "https://library.example.org", nested)
    refused = run("backup", "new", folder=tmp_path)
    assert refused.status == 2
    assert said in " ".join(refused.err.split())
