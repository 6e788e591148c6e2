"""`doctor` on a v3 library: what the kept sign-in says, and what the service says of it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines.doctor.examination import Examination, examine
from pipelines.doctor.findings import CheckResult, CheckStatus, worst
from pipelines.doctor.look import Look
from pipelines.errors import ExitStatus
from pipelines.scopes import SCOPES
from pipelines.service.clock import SystemClock
from pipelines.service.sign_in.token_store import TokenStore, open_tokens
from tests.sandbox.process import SandboxProcess
from tests.service.sign_in.home import TENANT, Home, unwritable


@pytest.fixture
def stranger(sandbox: SandboxProcess, tmp_path: Path) -> Home:
    """A v3 tenant to which nobody has signed in."""
    return Home.make(tmp_path, sandbox.base_url(), sandbox)


@pytest.fixture
def person(stranger: Home, sandbox: SandboxProcess) -> Home:
    """A v3 tenant to which somebody has signed in, on the consent page."""
    stranger.sign_in()
    sandbox.reset("counts")
    return stranger


def tokens_of(home: Home) -> TokenStore:
    """Where the sign-in is stored."""
    return open_tokens(home.settings, TENANT)


def look_at(home: Home) -> tuple[Examination, dict[str, CheckResult]]:
    """An examination of the tenant, and its findings by name."""
    with Look(home.settings, TENANT) as look:
        examined = examine(look)
    return examined, {finding.name: finding for finding in examined.findings}


@pytest.mark.long
def test_a_healthy_connection(person: Home, sandbox: SandboxProcess) -> None:
    """All scopes, a fresh token: nothing but what the sandbox's library does not show, and neither token (I10)."""
    examined, findings = look_at(person)
    assert worst(examined.findings) is ExitStatus.COMPLETE
    odd = [name for name, finding in findings.items() if finding.status in (CheckStatus.WARNING, CheckStatus.PROBLEM)]
    assert odd == ["rate"], "of the configuration of these tests"
    assert findings["other lists"].status is CheckStatus.OK
    assert "end of v2" not in findings
    assert examined.requests == sandbox.counts()["requests"] <= 24
    shown = str([finding.document for finding in examined.findings])
    assert not [token for token in (person.grant.access_token, person.grant.refresh_token) if str(token) in shown]


def test_nobody_has_signed_in(stranger: Home, sandbox: SandboxProcess) -> None:
    """Exit 4, with the command to run; the service is not asked."""
    examined, findings = look_at(stranger)
    assert (findings["token"].status, worst(examined.findings)) == (CheckStatus.PROBLEM, ExitStatus.SIGN_IN)
    assert f"bookferry login {TENANT}" in findings["token"].message
    assert sandbox.counts()["requests"] == 0


def test_a_sign_in_that_could_not_be_kept_when_it_is_renewed(person: Home, sandbox: SandboxProcess) -> None:
    """The token is good now and would be renewed tonight; where that cannot be written, the nightly backup would not work (I3)."""
    before = person.stored
    with unwritable(tokens_of(person).place):
        examined, findings = look_at(person)
    assert (findings["token"].status, worst(examined.findings)) == (CheckStatus.PROBLEM, ExitStatus.FAILED)
    assert "could not be read or written" in findings["token"].message
    assert sandbox.counts()["requests"] == 0
    assert person.stored == before


def test_a_sign_in_that_is_being_renewed(person: Home) -> None:
    """Another process has the lease: nothing is wrong, and nobody waits for its end."""
    with tokens_of(person).leased(SystemClock()):
        _, findings = look_at(person)
    assert findings["token"].status is CheckStatus.OK


WITHOUT_FILES = [scope for scope in SCOPES if scope != "assets:read"]
WITHOUT_USERS = ["library:read", "assets:read", "tasks:read"]
MADE_UP = "made-up-access-token"


@pytest.mark.parametrize(
    ("scopes", "changes", "name", "status", "said"),
    [
        (SCOPES, {}, "token", CheckStatus.OK, "signed in on"),
        (SCOPES, {"lifetime": 100}, "token", CheckStatus.OK, "and renewed"),
        (SCOPES, {"refresh_token": None}, "token", CheckStatus.WARNING, "no refresh token"),
        (SCOPES, {"refreshing_since": 1.0}, "token", CheckStatus.WARNING, "was lost"),
        (SCOPES, {"access_token": MADE_UP, "refresh_token": None}, "sign-in", CheckStatus.PROBLEM, "has ended"),
        (SCOPES, {"scopes": ()}, "scopes", CheckStatus.NOTE, ""),
        (SCOPES, {"scopes": ()}, "other lists", CheckStatus.OK, ""),
        (["users:read"], {}, "scopes", CheckStatus.PROBLEM, ""),
        (WITHOUT_FILES, {}, "scopes", CheckStatus.WARNING, "assets:read"),
        (WITHOUT_USERS, {}, "other lists", CheckStatus.WARNING, "^(?!.*tasks).*users:read"),
    ],
    ids=[
        "fresh",
        "renewed",
        "not renewable",
        "a lost response",
        "unknown to the service, which has the last word",
        "the service did not tell the scopes, as RFC 6749, 5.1 allows",
        "then trying tells",
        "no backup",
        "trap A11: without assets:read, a backup without one file",
        "a resource that the token may not list, by the service's own refusal",
    ],
)
def test_what_a_sign_in_allows(  # noqa: PLR0917
    stranger: Home, scopes: Sequence[str], changes: dict[str, Any], name: str, status: CheckStatus, said: str
) -> None:
    """Only a problem stops a backup, and a person must sign in then; no message has a token (I10)."""
    stranger.sign_in(scopes)
    of_the_grant = {field: value for field, value in changes.items() if field != "refreshing_since"}
    since = changes.get("refreshing_since")
    with tokens_of(stranger).leased(SystemClock()) as leased:
        leased.write(replace(stranger.stored, grant=replace(stranger.grant, **of_the_grant), refreshing_since=since))
    examined, findings = look_at(stranger)
    assert (findings[name].status, re.search(said, findings[name].message) is None) == (status, False), findings[name]
    assert worst(examined.findings) is (ExitStatus.SIGN_IN if status is CheckStatus.PROBLEM else ExitStatus.COMPLETE)
    assert MADE_UP not in str([finding.document for finding in examined.findings])


def test_a_store_that_is_damaged(person: Home) -> None:
    """Told in one finding, with the command that replaces it."""
    with sqlite3.connect(tokens_of(person).place) as db:
        db.execute("UPDATE sign_ins SET document = '{'")
    examined, findings = look_at(person)
    assert f"bookferry login {TENANT}" in findings["token"].message
    assert worst(examined.findings) is ExitStatus.SIGN_IN


@pytest.mark.long
def test_a_token_that_ended_early_is_renewed_and_kept(sandbox: SandboxProcess, person: Home) -> None:
    """Never a refresh whose result is not stored: an hour later on the service's clock, doctor renews, once, and the store has it (I3)."""
    before = person.grant
    sandbox.fault("jump", path="/api/v3/publications/all", seconds=3700)
    for _ in range(2):
        assert worst(look_at(person)[0].findings) is ExitStatus.COMPLETE
        assert person.refreshes() == 1
    assert (person.grant.refreshes, person.grant.access_token != before.access_token) == (before.refreshes + 1, True)


@pytest.mark.long
def test_a_sign_in_that_was_revoked(sandbox: SandboxProcess, person: Home) -> None:
    """Exit 4, with the command that helps, and no token in the words."""
    sandbox.control("POST", "oauth/grants/end", {"tenant": "library", "person": sandbox.user})
    grant = person.grant
    examined, _ = look_at(person)
    assert worst(examined.findings) is ExitStatus.SIGN_IN
    said = str([finding.document for finding in examined.findings])
    assert f"bookferry login {TENANT}" in said
    assert not [token for token in (grant.access_token, str(grant.refresh_token)) if token in said]
