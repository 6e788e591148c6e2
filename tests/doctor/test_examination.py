"""`doctor` on a v2 library: what is well, and each way in which it may not be."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pipelines.doctor.findings import CheckStatus, worst
from pipelines.errors import ExitStatus
from pipelines.humanize import size
from pipelines.settings.config_file import load_settings
from pipelines.settings.credentials import BasicCredentials
from pipelines.store.encryption import PersonalKey
from tests.doctor.conftest import Patient, ShiftedClock
from tests.sandbox.process import SandboxProcess
from tests.service.conftest import serve
from tests.service.scripted import Answer, Script, ScriptedServer

PatientOf = Callable[..., Patient]
AWAY = "postgresql://keeper:a-long-secret-word@127.0.0.1:1/tables"

__all__ = ["serve"]  # a fixture


@pytest.mark.long
def test_a_healthy_library(patient: Patient) -> None:
    """Every check is made, none is worse than a note. The service is asked a dozen times at most, for reading, and v3 without a sign-in."""
    examined = patient.amid(clock=ShiftedClock(timedelta())).examine()
    findings = {finding.name: finding for finding in examined.findings}
    assert worst(examined.findings) is ExitStatus.COMPLETE
    assert {"configuration", "secrets", "service", "sign-in", "clock", "rate", "disk", "database"} <= set(findings)
    odd = {name: finding.message for name, finding in findings.items() if finding.status is CheckStatus.PROBLEM}
    assert odd == {}
    assert {finding.name for finding in examined.findings if finding.unchecked} == {"file addresses"}, (
        "none on the first page"
    )
    assert examined.requests == patient.sandbox.counts()["requests"] <= 24
    requests = patient.sandbox.requests()
    assert {request["method"] for request in requests} == {"GET"}
    assert {request["sign_in"] for request in requests if "/api/v3/" in request["path"]} <= {None}


@pytest.mark.parametrize("missing", ["TEST_PASSWORD", "TEST_KEY"])
def test_the_sign_in_and_the_key_for_personal_data(
    patient: Patient, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """The key is named by its fingerprint. Without either no backup works: exit 2, and the service is not asked at all."""
    config = patient.folder / "bookferry.toml"
    config.write_text(f'personal_key_env = "TEST_KEY"\n{config.read_text()}')
    key = PersonalKey(bytes(range(32)))
    monkeypatch.setenv("TEST_KEY", key.text)
    finding = patient.find("secrets")
    assert (finding.status, key.fingerprint in finding.message) == (CheckStatus.OK, True)
    assert key.text not in str(finding.document)
    monkeypatch.delenv(missing)
    patient.sandbox.reset("counts")
    examined = patient.examine()
    [secrets] = [finding for finding in examined.findings if finding.name == "secrets"]
    assert (secrets.status, worst(examined.findings)) == (CheckStatus.PROBLEM, ExitStatus.USAGE)
    assert f"{missing}, which is not set" in secrets.message
    assert (patient.sandbox.counts()["requests"], examined.requests) == (0, 0)


@pytest.mark.parametrize(
    ("surroundings", "name", "status", "said"),
    [
        ({"clock": ShiftedClock(timedelta(hours=1))}, "clock", CheckStatus.WARNING, "1 h 0 min behind this machine's"),
        (
            {"clock": ShiftedClock(timedelta(hours=-1))},
            "clock",
            CheckStatus.WARNING,
            "1 h 0 min ahead of this machine's",
        ),
        *(
            ({"clock": ShiftedClock.at(datetime(*day, tzinfo=UTC))}, "end of v2", status, said)
            for day, status, said in (
                ((2026, 6, 1), CheckStatus.NOTE, "213 days left"),
                ((2026, 12, 30), CheckStatus.WARNING, "1 day left"),
                ((2026, 12, 31, 22), CheckStatus.WARNING, "0 days left"),
                ((2027, 1, 10), CheckStatus.WARNING, "10 days ago"),
            )
        ),
        *(
            ({"free_bytes": lambda _, free=free: free}, "disk", status, size(free))
            for free, status in (
                (10**12, CheckStatus.OK),
                (300_000_000, CheckStatus.WARNING),
                (50_000_000, CheckStatus.PROBLEM),
            )
        ),
    ],
)
def test_what_is_around(
    patient: Patient, surroundings: dict[str, Any], name: str, status: CheckStatus, said: str
) -> None:
    """A clock of which nobody can tell whether it or the library's is wrong, the end of v2 (service.md#shutdown), and a disk."""
    finding = patient.amid(**surroundings).find(name)
    assert (finding.status, said in finding.message) == (status, True), finding


@pytest.mark.parametrize("status", [404, 410])
def test_v2_is_over(patient: Patient, status: int) -> None:
    """After the end, and gone: what to do is in the configuration."""
    patient.sandbox.fault("status", path="/api/v2/", status=status, times=10)
    examined = patient.amid(clock=ShiftedClock.at(datetime(2027, 1, 10, tzinfo=UTC))).examine()
    findings = {finding.name: finding for finding in examined.findings}
    assert findings["service"].status is CheckStatus.PROBLEM
    assert "has ended" in findings["service"].message
    assert 'api = "v3"' in findings["service"].message
    assert worst(examined.findings) is ExitStatus.USAGE


def test_a_folder_that_cannot_be_made(patient: Patient) -> None:
    (patient.folder / "library-data").write_text("a file")
    examined = patient.examine()
    assert {finding.name: finding.status for finding in examined.findings}["data folder"] is CheckStatus.PROBLEM
    assert worst(examined.findings) is ExitStatus.FAILED
    assert examined.requests == 0


def test_a_database_that_another_program_has_locked(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the budget's account no request may leave (I1)."""
    monkeypatch.setattr("pipelines.state.local.LOCK_SECONDS", 0.1)
    patient.examine()
    patient.sandbox.reset("counts")
    with closing(sqlite3.connect(patient.folder / "library-data" / "state.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        examined = patient.examine()
        connection.execute("ROLLBACK")
    findings = {finding.name: finding for finding in examined.findings}
    assert findings["database"].status is CheckStatus.PROBLEM
    assert "locked" in findings["database"].message
    assert (examined.requests, patient.sandbox.counts()["requests"]) == (0, 0)


@pytest.mark.parametrize(
    "damage", [b"not a database at all, but long enough to be one" * 100, b"SQLite format 3\0" + b"\xff" * 8000]
)
def test_a_database_that_is_damaged(patient: Patient, damage: bytes) -> None:
    data = patient.folder / "library-data"
    data.mkdir()
    (data / "state.db").write_bytes(damage)
    examined = patient.examine()
    findings = {finding.name: finding for finding in examined.findings}
    assert findings["database"].status is CheckStatus.PROBLEM
    assert "damaged" in findings["database"].message
    assert examined.requests == 0


@pytest.mark.parametrize(("address", "exit_status"), [(AWAY, ExitStatus.FAILED), (None, ExitStatus.USAGE)])
@pytest.mark.parametrize(
    ("before", "after", "name"),
    [('postgres_env = "TEST_PLACE"', "", "postgres"), ("", '[iceberg]\nuri_env = "TEST_PLACE"', "iceberg")],
    ids=["Postgres", "the catalogue of Iceberg tables"],
)
def test_a_database_that_does_not_answer(  # noqa: PLR0917
    patient: Patient,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    after: str,
    name: str,
    address: str | None,
    exit_status: ExitStatus,
) -> None:
    """Or is not named at all. Told without its password."""
    config = patient.folder / "bookferry.toml"
    config.write_text(f"{before}\n{config.read_text()}\n{after}\n")
    if address is not None:
        monkeypatch.setenv("TEST_PLACE", address)
    finding = patient.find(name)
    assert (finding.status, finding.exit_status) == (CheckStatus.PROBLEM, exit_status)
    assert "a-long-secret-word" not in str(finding.document)


def test_a_catalogue_that_is_a_file_is_made_by_the_first_backup(patient: Patient) -> None:
    config = patient.folder / "bookferry.toml"
    config.write_text(f"{config.read_text()}\n[iceberg]\n")
    assert patient.find("iceberg").status is CheckStatus.OK
    assert not [*patient.folder.rglob("iceberg.db")]


def test_how_old_the_last_backup_is(patient: Patient) -> None:
    """Complaint B15: nobody knows when the backup was last good."""
    assert patient.find("last backup").status is CheckStatus.NOTE
    assert patient.run("backup", "library", "--json", variables=sign_in_of(patient)).status == 0
    assert patient.find("last backup").status is CheckStatus.OK
    late = patient.amid(clock=ShiftedClock(timedelta(days=3))).find("last backup")
    assert (late.status, "is 3 days" in late.message) == (CheckStatus.WARNING, True)
    (manifest,) = patient.folder.rglob("manifest.json")
    manifest.write_text("{")
    damaged = patient.find("last backup")
    assert (damaged.status, "manifest.json is damaged" in damaged.todo) == (CheckStatus.WARNING, True)


def sign_in_of(patient: Patient) -> dict[str, str]:
    """The account, for a process of its own."""
    credentials = load_settings(patient.folder / "bookferry.toml").credentials(patient.tenant)
    assert isinstance(credentials, BasicCredentials)
    return {"TEST_USER": credentials.username, "TEST_PASSWORD": credentials.password}


@pytest.mark.parametrize(
    ("variations", "name", "status", "said"),
    [
        ({"all_endpoint": "missing"}, "service", CheckStatus.OK, "/publications is answered"),
        ({"link": "relative"}, "page links", CheckStatus.OK, "leads to the next"),
        ({"link": "none"}, "page links", CheckStatus.OK, "count pages"),
        ({"link": "foreign"}, "page links", CheckStatus.PROBLEM, "elsewhere.example"),
        ({"link": "loop"}, "page links", CheckStatus.PROBLEM, "repeats records of the first"),
        ({"x_total": "absent"}, "page total", CheckStatus.NOTE, "no X-Total"),
        ({"per_page_limit": 20}, "page links", CheckStatus.OK, "leads to the next"),
    ],
    ids=lambda value: "-".join(f"{key}={choice}" for key, choice in value.items()) if isinstance(value, dict) else "",
)
def test_pages_that_stop_a_backup_are_a_problem(
    patient: Patient, variations: dict[str, Any], name: str, status: CheckStatus, said: str
) -> None:
    """Where the backup copes with what a service does differently, nobody has to act."""
    patient.sandbox.change(variations=variations)
    examined = patient.examine()
    (finding,) = [finding for finding in examined.findings if finding.name == name]
    assert finding.status is status
    assert said in f"{finding.message} {finding.todo}"
    stops = {"link": "foreign"}, {"link": "loop"}
    assert worst(examined.findings) is (ExitStatus.FAILED if variations in stops else ExitStatus.COMPLETE)


@pytest.mark.parametrize(
    ("fault", "details"), [("garble", {}), ("cut", {}), ("status", {"status": 503}), ("reset", {})]
)
def test_a_question_that_fails_costs_one_finding(patient: Patient, fault: str, details: dict[str, Any]) -> None:
    """Trouble with one list is not trouble with the service; with that where each backup begins, it is."""
    patient.sandbox.fault(fault, path="/tasks", times=2, **details)
    findings = {finding.name: finding for finding in patient.examine().findings}
    assert findings["page links"].status is CheckStatus.OK
    assert [name for name, finding in findings.items() if finding.status is CheckStatus.PROBLEM] == []
    patient.sandbox.fault(fault, path="/publications/all", times=2, **details)
    assert patient.find("service").status is CheckStatus.PROBLEM


def test_who_is_told_to_wait_asks_no_more(patient: Patient) -> None:
    """A 429 although we keep to the limit: somebody else uses the library, and needs no examination now."""
    patient.sandbox.fault("status", path="/api/v2/", status=429, retry_after=3600, times=50)
    examined = patient.examine()
    findings = {finding.name: finding for finding in examined.findings}
    assert findings["service"].status is CheckStatus.PROBLEM
    assert "429" in findings["service"].message
    assert patient.sandbox.counts()["requests"] == 1


ODD_RECORDS: list[dict[str, Any]] = [
    {"id": "12", "published_on": "1999", "doi": ["10.1/x"], "assets": [{"url": None}, 3], "authors": 7},
    {"id": None, "published_on": 1999, "categories": "History", "identifiers": [3], "assets": {}, "cover": []},
]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"<html>welcome</html>", headers={"content-type": "text/html"}),
        Answer({"message": "hello"}),
        Answer([1, 2, "three"], status=200),
        Answer(b"", status=204),
        Answer(b"", status=302, headers={"location": "https://elsewhere.example/?token=abcdefgh12345678"}),
        Answer(b"not json", headers={"content-type": "application/json"}),
        Answer({"error": "plain"}, status=500),
        Answer({"records": ODD_RECORDS}, headers={"X-Total": "many", "Link": "<::>; rel=next"}),
    ],
    ids=["html", "no list", "odd list", "empty", "elsewhere", "garbled", "500", "odd records"],
)
def test_whatever_answers_is_no_reason_to_break(
    sandbox: SandboxProcess, serve: Callable[[Script], ScriptedServer], patient_of: PatientOf, answer: Answer
) -> None:
    """A web page on /api, a proxy's greeting: one plain finding. Checks are total, like everything that looks at records (I7)."""
    examined = patient_of(sandbox, serve(lambda _: answer).url).examine()
    findings = {finding.name: finding for finding in examined.findings}
    shown = str([finding.document for finding in examined.findings])
    if answer.body != [1, 2, "three"]:
        stops = "page links" if "Link" in answer.headers else "service"
        assert findings[stops].status is CheckStatus.PROBLEM
        assert worst(examined.findings) is ExitStatus.FAILED
    assert not [words for words in ("abcdefgh12345678", "in Bookferry") if words in shown]


@pytest.mark.long
def test_v2_tells_how_to_read_the_lists_that_it_does_not_document(patient: Patient) -> None:
    """A second tenant of the same library, with version 3."""
    finding = patient.find("other lists")
    assert finding.status is CheckStatus.NOTE
    assert "users" in finding.message
    assert 'api = "v3"' in finding.todo
