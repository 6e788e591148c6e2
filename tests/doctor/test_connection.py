"""`doctor` on a v3 library: what the kept sign-in says, and what the service says of it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pipelines.doctor.examination import Examination, examine
from pipelines.doctor.findings import CheckResult, CheckStatus, worst
from pipelines.doctor.look import MAX_REQUESTS, Look
from pipelines.errors import ExitStatus
from pipelines.scopes import SCOPES
from pipelines.service.clock import SystemClock
from pipelines.service.sign_in.stored_sign_in import Grant, Registration, StoredSignIn
from pipelines.service.sign_in.token_store import TokenStore, open_tokens
from pipelines.settings.config_file import load_settings
from tests.doctor.conftest import Patient
from tests.sandbox.process import SandboxProcess
from tests.service.sign_in.home import TENANT, unwritable
from tests.service.sign_in.home import Home as SignInHome

CONFIG = """\
data = "library-data"
tokens = "sign-ins"

[tenants.library]
base_url = "{base_url}"
api = "v3"
"""


class SignedIn:
    """A v3 tenant whose sign-in a test keeps as it likes."""

    def __init__(self, patient: Patient) -> None:
        self.patient = patient
        self._base_url = patient.sandbox.base_url()
        (patient.folder / "bookferry.toml").write_text(CONFIG.format(base_url=self._base_url))

    def token(self, *scopes: str) -> str:
        """An access token of the sandbox."""
        answer = self.patient.sandbox.control("POST", "tokens", {"tenant": "library", "scopes": list(scopes)})
        return str(answer["access_token"])

    def keep(self, *scopes: str, connection: dict[str, Any] | None = None, **grant: Any) -> None:
        """Keep a sign-in with these scopes, and whatever else of it a test wants otherwise."""
        kept = Grant(
            client_id="a-client",
            access_token=self.token(*scopes),
            refresh_token="a-refresh-token-that-nobody-uses",
            scopes=scopes,
            lifetime=3600,
            obtained=SystemClock().now().timestamp(),
            signed_in_at=SystemClock().now().timestamp(),
        )
        registration = Registration(
            client_id="a-client",
            client_secret=None,
            auth="none",
            redirect_uris=("http://127.0.0.1:1/callback",),
            asked=scopes,
        )
        self.store(StoredSignIn(self._base_url, "library", registration, replace(kept, **grant), **(connection or {})))

    def store(self, connection: StoredSignIn) -> None:
        """Keep a connection."""
        with self.tokens.leased(SystemClock()) as leased:
            leased.write(connection)

    @property
    def tokens(self) -> TokenStore:
        """Where it is stored."""
        return open_tokens(load_settings(self.patient.folder / "bookferry.toml"), "library")

    def findings(self) -> tuple[Examination, dict[str, CheckResult]]:
        """What there is to find."""
        examined = self.patient.examine()
        return examined, {finding.name: finding for finding in examined.findings}


@pytest.fixture
def signed_in(patient: Patient) -> SignedIn:
    """A v3 tenant that nobody has signed in to yet."""
    return SignedIn(patient)


@pytest.mark.long
def test_a_healthy_connection(signed_in: SignedIn) -> None:
    """All scopes, a fresh token: nothing but what the sandbox's library does not show, and neither token (I10)."""
    signed_in.keep(*SCOPES)
    examined, found = signed_in.findings()
    assert worst(examined.findings) is ExitStatus.COMPLETE
    assert {
        name: one.message for name, one in found.items() if one.status in (CheckStatus.WARNING, CheckStatus.PROBLEM)
    } == {}
    assert found["other lists"].status is CheckStatus.OK
    assert "end of v2" not in found
    assert examined.requests == signed_in.patient.sandbox.counts()["requests"] <= MAX_REQUESTS
    grant = signed_in.tokens.read().grant
    assert grant is not None
    shown = str([finding.document for finding in examined.findings])
    assert not [token for token in (grant.access_token, grant.refresh_token) if token and token in shown]


def test_nobody_has_signed_in(signed_in: SignedIn) -> None:
    """Exit 4, with the command to run; the service is not asked."""
    examined, found = signed_in.findings()
    assert (found["token"].status, worst(examined.findings)) == (CheckStatus.PROBLEM, ExitStatus.SIGN_IN)
    assert "bookferry login library" in found["token"].message
    assert signed_in.patient.sandbox.counts()["requests"] == 0


def test_a_sign_in_that_could_not_be_kept_when_it_is_renewed(signed_in: SignedIn) -> None:
    """The token is good now and would be renewed tonight; where that cannot be written, the nightly backup would not work (I3)."""
    signed_in.keep(*SCOPES)
    before = signed_in.tokens.read()
    with unwritable(signed_in.tokens.place):
        examined, found = signed_in.findings()
    assert (found["token"].status, worst(examined.findings)) == (CheckStatus.PROBLEM, ExitStatus.FAILED)
    assert "could not be read or written" in found["token"].message
    assert signed_in.patient.sandbox.counts()["requests"] == 0
    assert signed_in.tokens.read() == before


def test_a_sign_in_that_is_being_renewed(signed_in: SignedIn) -> None:
    """Another process has the lease: nothing is wrong, and nobody waits for its end."""
    signed_in.keep(*SCOPES)
    with signed_in.tokens.leased(SystemClock()):
        _, found = signed_in.findings()
    assert found["token"].status is CheckStatus.OK


def test_a_token_that_the_service_does_not_know(signed_in: SignedIn) -> None:
    """Whatever the store says, the service has the last word."""
    signed_in.keep(*SCOPES, access_token="made-up-access-token", refresh_token=None)
    examined, found = signed_in.findings()
    assert found["sign-in"].status is CheckStatus.PROBLEM
    assert worst(examined.findings) is ExitStatus.SIGN_IN
    assert "made-up-access-token" not in str([finding.document for finding in examined.findings])


@pytest.mark.long
def test_trap_a11_a_token_without_assets_read(signed_in: SignedIn) -> None:
    """A token without `assets:read` silently lacks `url`: a backup without one file."""
    scopes = [scope for scope in SCOPES if scope != "assets:read"]
    signed_in.keep(*scopes)
    examined, found = signed_in.findings()
    assert found["scopes"].status is CheckStatus.WARNING
    assert "assets:read" in found["scopes"].message
    assert worst(examined.findings) is ExitStatus.COMPLETE


def test_a_resource_that_the_token_may_not_list(signed_in: SignedIn) -> None:
    """The service's own refusal is told with its scope."""
    signed_in.keep("library:read", "assets:read", "tasks:read")
    examined, found = signed_in.findings()
    assert found["other lists"].status is CheckStatus.WARNING
    assert "users:read" in found["other lists"].message
    assert "tasks" not in found["other lists"].message
    assert worst(examined.findings) is ExitStatus.COMPLETE


def test_without_library_read_there_is_no_backup(signed_in: SignedIn) -> None:
    signed_in.keep("users:read")
    examined, found = signed_in.findings()
    assert found["scopes"].status is CheckStatus.PROBLEM
    assert worst(examined.findings) is ExitStatus.SIGN_IN


def test_scopes_that_the_service_did_not_tell(signed_in: SignedIn) -> None:
    """RFC 6749, 5.1: `scope` may be left out where it is what was asked for. Then trying tells."""
    signed_in.keep(*SCOPES)
    tokens = open_tokens(load_settings(signed_in.patient.folder / "bookferry.toml"), "library")
    kept = tokens.read()
    assert kept.grant is not None
    signed_in.store(replace(kept, grant=replace(kept.grant, scopes=())))
    _, found = signed_in.findings()
    assert found["scopes"].status is CheckStatus.NOTE
    assert found["other lists"].status is CheckStatus.OK


@pytest.mark.parametrize(
    ("grant", "connection", "status", "said"),
    [
        ({"lifetime": 100}, {}, CheckStatus.OK, "and renewed"),
        ({"refresh_token": None}, {}, CheckStatus.WARNING, "no refresh token"),
        ({}, {"refreshing_since": 1.0}, CheckStatus.WARNING, "was lost"),
        ({"ends_at": 1e12}, {}, CheckStatus.OK, "and renewed"),
        ({}, {}, CheckStatus.OK, "signed in on"),
    ],
)
def test_the_age_of_the_token(
    signed_in: SignedIn, grant: dict[str, Any], connection: dict[str, Any], status: CheckStatus, said: str
) -> None:
    signed_in.keep(*SCOPES, connection=connection, **grant)
    _, found = signed_in.findings()
    assert found["token"].status is status
    assert said in found["token"].message


def test_a_sign_in_that_ends_soon(signed_in: SignedIn) -> None:
    """Some servers say when an unused refresh token ends."""
    in_two_days = SystemClock().now().timestamp() + timedelta(days=2).total_seconds()
    signed_in.keep(*SCOPES, ends_at=in_two_days)
    _, found = signed_in.findings()
    assert found["token"].status is CheckStatus.WARNING


def test_a_store_that_is_damaged(signed_in: SignedIn) -> None:
    """Told in one finding, with the command that replaces it."""
    signed_in.keep(*SCOPES)
    with sqlite3.connect(signed_in.tokens.place) as db:
        db.execute("UPDATE sign_ins SET document = '{'")
    examined, found = signed_in.findings()
    assert "bookferry login library" in found["token"].message
    assert worst(examined.findings) is ExitStatus.SIGN_IN


def look_at(person: SignInHome) -> Examination:
    """An examination of the tenant that somebody has signed in to."""
    with Look(person.settings, TENANT) as look:
        return examine(look)


@pytest.fixture
def person(service: SandboxProcess, tmp_path: Path) -> SignInHome:
    """A v3 tenant to which somebody has signed in, on the consent page."""
    home = SignInHome.make(tmp_path, service.base_url(), service)
    home.sign_in()
    return home


@pytest.mark.long
def test_a_token_that_ended_early_is_renewed_and_kept(service: SandboxProcess, person: SignInHome) -> None:
    """Never a refresh whose result is not stored: an hour later on the service's clock, doctor renews, once, and the store has it (I3)."""
    before = person.grant
    service.fault("jump", path="/api/v3/publications/all", seconds=3700)
    examined = look_at(person)
    assert worst(examined.findings) is ExitStatus.COMPLETE
    assert person.refreshes() == 2, "the code, and one refresh"
    assert (person.grant.refreshes, person.grant.access_token != before.access_token) == (before.refreshes + 1, True)
    assert worst(look_at(person).findings) is ExitStatus.COMPLETE
    assert person.refreshes() == 2


@pytest.mark.long
def test_a_sign_in_that_was_revoked(service: SandboxProcess, person: SignInHome) -> None:
    """Exit 4, with the command that helps, and no token in the words."""
    service.control("POST", "oauth/grants/end", {"tenant": "library", "person": service.user})
    kept = person.grant
    examined = look_at(person)
    assert worst(examined.findings) is ExitStatus.SIGN_IN
    said = str([finding.document for finding in examined.findings])
    assert f"bookferry login {TENANT}" in said
    assert kept.access_token not in said
    assert str(kept.refresh_token) not in said
