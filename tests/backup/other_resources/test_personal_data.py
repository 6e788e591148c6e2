"""Users backed up with a key, by commands: no personal data is on the disk in the clear, even after kill -9 in the middle."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path

import pytest

from pipelines.service.clock import SystemClock
from pipelines.store.snapshots.facts import ResourceFacts
from tests.backup.other_resources.conftest import Lists, Serve, TwoVersionRunner
from tests.cli.command import BOOKFERRY, Outcome, environment, run
from tests.service.scripted import Answer, Received
from tests.store.snapshot_factory import KEY, OTHER, files_with

MARK = "unmistakable"
COUNT = 230
VARIABLE = "BOOKFERRY_PERSONAL_KEY"


def user(number: int) -> dict[str, object]:
    """One user; each value but id and roles has a mark."""
    return {
        "id": number,
        "email": f"person{number}@{MARK}.example",
        "name": f"{MARK} {number}",
        "roles": ["librarian"],
        "phone": f"{MARK}-{number}",
    }


@pytest.fixture
def library() -> Lists:
    """A service with users only."""
    return Lists({"users": [user(number) for number in range(1, COUNT + 1)]})


@pytest.fixture
def runner(serve: Serve, library: Lists) -> TwoVersionRunner:
    """A signed-in configuration with a key for personal data."""
    runner, _server = serve(library)
    runner.config.write_text(f'personal_key_env = "{VARIABLE}"\n{runner.config.read_text()}')
    return runner


def bookferry(runner: TwoVersionRunner, *arguments: str, key: str | None = KEY.text) -> Outcome:
    """Run `bookferry ARGUMENTS` with this key."""
    return run(*arguments, folder=runner.config.parent, variables={VARIABLE: key} if key else {})


SECRETS = (MARK.encode(), KEY.text.encode(), KEY.secret)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_killed_in_the_middle_of_the_users_and_run_again(runner: TwoVersionRunner, library: Lists) -> None:
    """I9, I10: page logs, tables, catalogue, state and Dagster's history contain no address, no name and not the key."""
    folder, go_on = runner.config.parent, threading.Event()
    library.before = lambda name: name != "users?4" or go_on.wait()
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
        go_on.set()
    assert files_with(folder, *SECRETS) == []

    outcome = bookferry(runner, "backup", "new", "--resources", "users", "--json")
    assert outcome.status == 0, outcome.err
    assert outcome.document["counts"] == {"users": COUNT}
    sql = "SELECT email, phone FROM users WHERE id = 100"
    answer = bookferry(runner, "query", "--personal", sql, "--json")
    assert answer.document["rows"] == [{"email": f"person100@{MARK}.example", "phone": f"{MARK}-100"}]
    assert files_with(folder, *SECRETS) == []
    assert not [word for word in SECRETS[:2] if word.decode() in outcome.out + outcome.err]

    bookferry(runner, "backup", "new", "--json", key=None).assert_failed(
        2, f"names the environment variable {VARIABLE}, which is not set", "openssl rand -base64 32"
    )
    bookferry(runner, "query", "--personal", "SELECT * FROM users", key=None).assert_failed(
        2, f"encrypted with the personal key {KEY.fingerprint}", f"{VARIABLE}, which is not set"
    )
    verified = bookferry(runner, "snapshots", "verify", key=OTHER.text)
    assert verified.status == 0
    assert (
        verified.out.count(
            f"Its rows were not counted, because it is encrypted with the personal key {KEY.fingerprint}"
        )
        == 3
    )


@pytest.mark.long
@pytest.mark.timeout(200)
def test_without_a_key_only_the_tables_have_personal_data(serve: Serve, library: Lists) -> None:
    """Messages, manifest, catalogue and Dagster's history contain no address and no name."""
    runner, _server = serve(library)
    outcome = run("backup", "new", "--resources", "users", "--json", folder=runner.config.parent)
    assert outcome.status == 0, outcome.err
    assert MARK not in outcome.out + outcome.err
    tables = {"raw/users.parquet", "users.parquet"}
    places = [finding.partition(": ")[0] for finding in files_with(runner.config.parent, MARK.encode())]
    assert places
    assert {Path(place).relative_to(outcome.document["path"]).as_posix() for place in places} <= tables


@pytest.mark.parametrize(
    "body",
    [
        f'{{"records": [{{"id": 51, "email": "person51@{MARK}.example"',
        f'"{MARK}"',
        f'{{"records": "{MARK}"}}',
    ],
)
def test_an_unknown_response_is_not_quoted(serve: Serve, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the page of users and quotes nothing of it. A minute of retries takes a second here."""
    patient = SystemClock.sleep
    monkeypatch.setattr(SystemClock, "sleep", lambda clock, seconds: patient(clock, seconds / 50))

    def service(request: Received) -> Answer:
        if request.query["page"] == "1":
            return Answer([user(number) for number in range(1, 51)], headers={"X-Total": "80"})
        return Answer(body.encode(), headers={"X-Total": "80"})

    runner, _server = serve(service)
    with runner.library() as library:
        _capture, facts = library.read_raw("new", "run", "users", ("users",))
    assert isinstance(facts, ResourceFacts)
    assert "cannot send records 51 to 80" in facts.problems[-1]
    assert MARK not in "".join(facts.problems)


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({"X-Total": "5"}, "users: The service announced 5 records (X-Total) and sent 3 different ones."),
        ({}, "users: 2 records listed twice, for example id (not shown), (not shown)."),
    ],
)
def test_ids_that_are_texts_are_not_quoted(serve: Serve, headers: dict[str, str], problem: str) -> None:
    """They may be addresses. The manifest says that some came twice, or how many different ones came."""
    people = [{**user(number), "id": f"person{number % 3}@{MARK}.example"} for number in range(1, 6)]
    runner, _server = serve(lambda _: Answer(people, headers=headers))
    manifest = runner.back_up("users").manifest
    assert manifest.problems == [problem]
    assert MARK not in str(manifest)
