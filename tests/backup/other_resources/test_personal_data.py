"""Users backed up with a key, as people run it: nothing of a person is anywhere on the disk, even after kill -9 in the middle."""

from __future__ import annotations

import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipelines.errors import BookferryError
from pipelines.service.clock import SystemClock
from pipelines.store.encryption import PersonalKey
from tests.backup.other_resources.conftest import Desk
from tests.cli.command import BOOKFERRY, Outcome, environment, run
from tests.service.scripted import Answer, Received, ScriptedServer

KEY, OTHER = PersonalKey(bytes(range(32))), PersonalKey(bytes(32))
MARK = "unmistakable"
COUNT = 230
VARIABLE = "BOOKFERRY_PERSONAL_KEY"


def user(number: int) -> dict[str, object]:
    """One user; everything in it but id and roles is marked."""
    return {
        "id": number,
        "email": f"person{number}@{MARK}.example",
        "name": f"{MARK} {number}",
        "roles": ["librarian"],
        "phone": f"{MARK}-{number}",
    }


class Library:
    """A service with users only, which keeps whoever asks for the page `silent` waiting until it is told to go on."""

    def __init__(self) -> None:
        self.silent: int | None = None
        self.go_on = threading.Event()

    def __call__(self, request: Received) -> Answer:
        """What it answers."""
        if not request.path.endswith("/users"):
            return Answer({"error": {"code": "RecordNotFound", "message": "Requested record not found"}}, status=404)
        page = int(request.query["page"])
        if page == self.silent:
            self.go_on.wait()
        part = [user(number) for number in range(50 * page - 49, min(50 * page, COUNT) + 1)]
        return Answer({"records": part}, headers={"X-Total": str(COUNT)})


@pytest.fixture
def library() -> Iterator[Library]:
    """The service; nobody waits for it when the test is over."""
    library = Library()
    yield library
    library.go_on.set()


Serve = Callable[..., tuple[Desk, ScriptedServer]]


@pytest.fixture
def desk(serve: Serve, library: Library) -> Desk:
    """Signed in, with a key for personal data."""
    desk, _server = serve(library)
    desk.config.write_text(f'personal_key_env = "{VARIABLE}"\n{desk.config.read_text()}')
    return desk


def bookferry(desk: Desk, *arguments: str, key: str | None = KEY.text) -> Outcome:
    """`bookferry ARGUMENTS` by somebody with this key."""
    return run(*arguments, folder=desk.config.parent, variables={VARIABLE: key} if key else {})


def files_with(folder: Path, *words: bytes) -> list[str]:
    """Files, in whatever folder, that hold one of the words as it stands."""
    return [
        f"{path}: {word!r}"
        for path in folder.rglob("*")
        if path.is_file()
        for word in words
        if word in path.read_bytes()
    ]


SECRETS = (MARK.encode(), KEY.text.encode(), KEY.secret)


@pytest.mark.timeout(400)
def test_killed_in_the_middle_of_the_users_and_run_again(desk: Desk, library: Library) -> None:
    """I9, I10: pages on their way, tables, catalogue, state, Dagster's history: none of them holds an address, a name or the key."""
    folder, library.silent = desk.config.parent, 4
    killed = subprocess.Popen(
        [*BOOKFERRY, "backup", "new", "--resources", "users"],
        cwd=folder,
        env=environment(**{VARIABLE: KEY.text}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not any(path.stat().st_size for path in (folder / "library-data" / "work").glob("*/*/pages/users")):
            assert killed.poll() is None
            time.sleep(0.02)
    finally:
        killed.kill()
        killed.wait()
    assert files_with(folder, *SECRETS) == []

    library.silent = None
    library.go_on.set()
    done = bookferry(desk, "backup", "new", "--resources", "users", "--json")
    assert done.status == 0, done.err
    assert done.document["counts"] == {"users": COUNT}
    sql = "SELECT email, residue->>'phone' AS phone FROM users WHERE id = 100"
    asked = bookferry(desk, "query", "--personal", sql, "--json")
    assert asked.document["rows"] == [{"email": f"person100@{MARK}.example", "phone": f"{MARK}-100"}]
    assert files_with(folder, *SECRETS) == []
    assert not [word for word in SECRETS[:2] if word.decode() in done.out + done.err]

    bookferry(desk, "backup", "new", "--json", key=None).assert_failed(
        2, f"names the environment variable {VARIABLE}, which is not set", "openssl rand -base64 32"
    )
    bookferry(desk, "query", "--personal", "SELECT * FROM users", key=None).assert_failed(
        2, f"encrypted with the personal key {KEY.fingerprint}", f"{VARIABLE}, which is not set"
    )
    verified = bookferry(desk, "snapshots", "verify", key=OTHER.text)
    assert verified.status == 0
    assert (
        verified.out.count(f"Its rows were not counted: it is encrypted with the personal key {KEY.fingerprint}") == 3
    )


@pytest.mark.timeout(200)
def test_without_a_key_only_the_tables_hold_what_is_personal(serve: Serve, library: Library) -> None:
    """What a backup says and keeps beside its tables has no address and no name: messages, manifest, catalogue, Dagster's history."""
    desk, _server = serve(library)
    done = run("backup", "new", "--resources", "users", "--json", folder=desk.config.parent)
    assert done.status == 0, done.err
    assert MARK not in done.out + done.err
    tables = {"raw/users.parquet", "users.parquet"}
    found = [one.partition(": ")[0] for one in files_with(desk.config.parent, MARK.encode())]
    assert found
    assert {Path(one).relative_to(done.document["path"]).as_posix() for one in found} <= tables


@pytest.mark.parametrize(
    "body",
    [
        f'{{"records": [{{"id": 51, "email": "person51@{MARK}.example"',
        f'"{MARK}"',
        f'{{"records": "{MARK}"}}',
    ],
)
def test_an_answer_that_is_not_understood_is_not_quoted(
    serve: Serve, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is wrong with a page of users: the message names the page. A minute of asking again is over in a second."""
    patient = SystemClock.sleep
    monkeypatch.setattr(SystemClock, "sleep", lambda clock, seconds: patient(clock, seconds / 50))

    def service(request: Received) -> Answer:
        if request.query["page"] == "1":
            return Answer([user(number) for number in range(1, 51)], headers={"X-Total": "80"})
        return Answer(body.encode(), headers={"X-Total": "80"})

    desk, _server = serve(service)
    with pytest.raises(BookferryError) as told, desk.library() as library:
        library.read_raw("new", "run", "users", ("users",))
    assert MARK not in "".join(traceback.format_exception(told.value))


def test_ids_that_are_texts_are_not_told(serve: Serve) -> None:
    """They may be addresses. That some came twice is told."""
    people = [{**user(number), "id": f"person{number % 3}@{MARK}.example"} for number in range(1, 6)]
    desk, _server = serve(lambda _: Answer(people, headers={"X-Total": "5"}))
    manifest = desk.back_up("users").manifest
    assert [one for one in manifest.problems if "were listed twice, for example id (not shown)" in one]
    assert MARK not in str(manifest)


def test_what_the_data_dictionary_says(desk: Desk) -> None:
    """Which columns are personal, and how they are seen."""
    columns = bookferry(desk, "tables", "users", "--json").document["columns"]
    assert {one["column"] for one in columns if one["personal"]} == {"email", "name", "residue", "sha256"}
