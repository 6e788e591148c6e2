"""Another server than our own sandbox, with every liberty that the RFCs leave to a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import (
    BookferryError,
    ConfigurationError,
    ProtocolError,
    RefusedError,
    SignInError,
    StorageError,
    TemporaryError,
)
from pipelines.service.clock import SystemClock
from pipelines.service.http.bodies import MAX_BODY
from pipelines.service.listing.listing import Listing
from pipelines.service.sign_in.authorization_server import TRIES_WITHOUT_EFFECT
from pipelines.service.sign_in.login import signing_in
from pipelines.service.sign_in.stored_sign_in import Grant
from pipelines.service.sign_in.token_refresh import MAX_REJECTED, MOST_TRIES
from pipelines.service.sign_in.token_store import open_tokens
from tests.service.manual_clock import ManualClock
from tests.service.sign_in.foreign import ForeignService, Liberties
from tests.service.sign_in.home import Home, answer_in, unwritable

SCOPES = ("library:read", "assets:read")
Visit = Callable[..., tuple[Home, ForeignService]]


@pytest.fixture
def visit(tmp_path: Path) -> Iterator[Visit]:
    """Starts such a server, and creates a configuration for it."""
    with ExitStack() as stack:

        def start(liberties: Liberties | None = None, tenant_lines: str = "") -> tuple[Home, ForeignService]:
            service = stack.enter_context(ForeignService(liberties))
            return Home.make(tmp_path / "home", service.base_url, tenant_lines=tenant_lines), service

        yield start


@pytest.fixture
def expired(visit: Visit) -> Visit:
    """The same, signed in with an access token that has ended."""

    def start(*arguments: Any, **options: Any) -> tuple[Home, ForeignService]:
        home, service = visit(*arguments, **options)
        sign_in(home, service)
        service.access.clear()
        return home, service

    return start


def sign_in(home: Home, service: ForeignService, **changes: str | None) -> Grant:
    """Signs in as a person who allows everything."""
    with signing_in(home.settings, "new", state=home.state) as login:
        question = login.ask(SCOPES)
        return login.finish(question, answer_in(service.authorize(question.url, **changes)))


def without(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Leaves fields out."""
    return lambda answer: {name: value for name, value in answer.items() if name not in names}


def with_(**fields: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Sets fields."""
    return lambda answer: {**answer, **fields}


@pytest.mark.parametrize(
    "liberties",
    [
        Liberties(),
        Liberties(rotates=False),
        Liberties(token=without("expires_in", "scope", "token_type")),
        Liberties(token=with_(expires_in="3600", token_type="bearer")),
        Liberties(token=with_(expires_in=3600.5, token_type="BEARER", scope=list(SCOPES))),
        Liberties(token=with_(expires_in=None, scope=None, id_token="x", not_before_policy=0)),
        Liberties(token=with_(expires_in=0, refresh_expires_in=1800)),
        Liberties(token=with_(expires_in="inf")),
        Liberties(content_type="text/plain"),
        Liberties(registration=without("token_endpoint_auth_method", "redirect_uris", "scope")),
        Liberties(registration=with_(registration_access_token="y", client_id_issued_at="today", scope="library:read")),
    ],
)
def test_liberties_of_an_authorization_server(visit: Visit, liberties: Liberties) -> None:
    """RFC 6749, 5.1: `expires_in` and `scope` are optional, the type is in any case; 6: a new refresh token is optional."""
    home, service = visit(liberties)
    grant = sign_in(home, service)
    assert (grant.lifetime, grant.scopes) == (pytest.approx(3600, abs=1), SCOPES)
    for number in (1, 2):
        service.access.clear()
        assert home.read().headers["x-total"] == "10000"
        assert home.grant.refreshes == number
    assert home.grant.scopes == SCOPES
    refreshed = [request.form["refresh_token"] for request in service.tokens_asked("refresh_token")]
    assert (len(set(refreshed)) == 1) is not liberties.rotates
    assert all(
        set(request.form) == {"grant_type", "refresh_token", "client_id"}
        for request in service.tokens_asked("refresh_token")
    )


@pytest.mark.long
def test_a_server_that_forgets_the_refresh_token(visit: Visit) -> None:
    """service.md#tokens: a refresh token is issued; without one, the sign-in lasts as long as its access token, and then says so."""
    home, service = visit(Liberties(token=without("refresh_token")))
    sign_in(home, service)
    assert home.read().status_code == 200
    service.access.clear()
    with pytest.raises(SignInError, match=r"gave no refresh token.*bookferry login new"):
        home.read()


@pytest.mark.long
@pytest.mark.parametrize("auth", ["client_secret_basic", "client_secret_post"])
def test_confidential_clients(expired: Visit, auth: str) -> None:
    """RFC 6749, 2.3.1: id and secret are form-encoded before they become Basic credentials.

    The secret is stored, because it is issued once.
    """
    home, service = expired(tenant_lines=f'client_auth = "{auth}"')
    assert home.read().status_code == 200
    exchange = service.tokens_asked("authorization_code")[0]
    assert exchange.form["resource"] == f"{service.base_url}/api/v3"
    assert ("client_id" in exchange.form) is (auth == "client_secret_post")
    sign_in(home, service)
    assert service.count("/oauth/clients") == 1


def test_a_client_that_an_administrator_issued(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    """service.md#clients: an issued client is always confidential. A rotated secret is reported, exit 2."""
    tenant_lines = 'client_id = "foreign client"\nclient_secret_env = "FOREIGN_SECRET"\nredirect_uri = "https://connector.example/callback"'
    home, service = visit(Liberties(secret="s3cret of the administrator", auth="client_secret_basic"), tenant_lines)
    with pytest.raises(ConfigurationError, match="FOREIGN_SECRET, which is not set"):
        sign_in(home, service)
    monkeypatch.setenv("FOREIGN_SECRET", "s3cret of the administrator")
    sign_in(home, service)
    service.access.clear()
    assert home.read().status_code == 200
    assert service.count("/oauth/clients") == 0
    monkeypatch.setenv("FOREIGN_SECRET", "another secret by mistake")
    service.access.clear()
    with pytest.raises(
        ConfigurationError, match=r"does not accept the client foreign client.*secret rotated"
    ) as caught:
        home.read()
    assert "another secret by mistake" not in str(caught.value)
    with pytest.raises(ConfigurationError, match=r"foreign client of tenants\.new.*client_secret_env") as caught:
        sign_in(home, service)
    assert "another secret by mistake" not in str(caught.value)
    monkeypatch.setenv("FOREIGN_SECRET", "s3cret of the administrator")
    assert home.read().status_code == 200  # a wrong secret has cost nothing


@pytest.mark.parametrize(
    ("refusal", "expected", "registrations"),
    [
        ((401, b'{"error": "invalid_client"}'), "no longer knows the client that Bookferry registered", 2),
        ((400, b'{"error": "unauthorized_client"}'), "no longer knows the client that Bookferry registered", 2),
        ((401, b"<html>"), "answered 401 Unauthorized", 1),  # perhaps of a proxy
    ],
)
def test_a_library_that_forgot_our_client(
    expired: Visit, refusal: tuple[int, bytes], expected: str, registrations: int
) -> None:
    """The next login registers a new client, once. Registrations are few: ours is forgotten only where the server says so."""
    home, service = expired()
    service.liberties.refusal = refusal
    with pytest.raises(SignInError, match=rf"{expected}.*bookferry login new"):
        home.read()
    service.liberties.refusal = None
    sign_in(home, service)
    assert service.count("/oauth/clients") == registrations
    assert home.read().status_code == 200


@pytest.mark.parametrize(
    ("status", "headers", "kind", "expected"),
    [
        (429, {}, TemporaryError, "429 Too Many Requests.*Or ask an administrator"),
        (429, {"Retry-After": "7200"}, TemporaryError, "again after 20 November 2026 03:23 UTC. Or ask"),
        (302, {"Location": "/login"}, ConfigurationError, "programs cannot register there"),
        (403, {}, ConfigurationError, "does not accept registrations of programs"),
        (422, {}, RefusedError, "does not take Bookferry's registration"),
        (304, {}, ProtocolError, "no response to a registration"),
    ],
)
def test_a_registration_that_is_refused(
    visit: Visit, status: int, headers: dict[str, str], kind: type[BookferryError], expected: str
) -> None:
    """service.md#clients: registrations a day are limited. Each is asked for once, and the message says what to do and when."""
    home, service = visit(Liberties(registrations_refused=[(status, headers)]))
    clock = ManualClock(5_000.0)
    with signing_in(home.settings, "new", state=home.state, clock=clock) as login, pytest.raises(kind, match=expected):
        login.ask(SCOPES)
    assert service.count("/oauth/clients") == 1


def test_a_library_that_cannot_be_reached_is_tried_for_fifteen_seconds(tmp_path: Path) -> None:
    """Five tries; without a connection nothing was sent, so each of them is safe."""
    home, clock = Home.make(tmp_path, "http://127.0.0.1:1/lib"), ManualClock(5_000.0)
    signs_in = signing_in(home.settings, "new", state=home.state, clock=clock)
    with (
        signs_in as login,
        pytest.raises(TemporaryError, match=r"cannot connect.*Is http://127.0.0.1:1/lib the library's address"),
    ):
        login.ask(SCOPES)
    assert clock.monotonic() == pytest.approx(5_015, abs=0.5)


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (
            (401, b'{"error": "invalid_client"}'),
            r"client that Bookferry registered.*bookferry login new` again, with --new-client",
        ),
        ((400, b'{"error": "invalid_grant"}'), r"invalid_grant.*valid once.*bookferry login new` again"),
        ((502, b"<h1>Bad gateway</h1>"), r"502 Bad Gateway.*bookferry login new` again"),
    ],
)
def test_a_refused_code_names_the_remedy(visit: Visit, refusal: tuple[int, bytes], expected: str) -> None:
    """Each refusal names the command that helps."""
    home, service = visit(Liberties(refusal=refusal))
    with pytest.raises(BookferryError, match=expected):
        sign_in(home, service)

    def break_off(_: dict[str, Any]) -> dict[str, Any]:
        raise ConnectionResetError

    for liberties in (Liberties(token=break_off), Liberties(registration=break_off)):
        home, service = visit(liberties)
        with pytest.raises(TemporaryError, match=r"response did not arrive.*bookferry login new` again"):
            sign_in(home, service)
        counts = service.count("/oauth/clients"), service.count("/oauth/token")
        assert counts in ((1, 1), (1, 0)), "registrations are few, and a code is good once: neither is repeated"


def test_no_registration_is_wasted_where_it_cannot_be_kept(visit: Visit) -> None:
    """service.md#clients: registrations a day are limited; a full or broken disk must not use them up."""
    home, service = visit()
    with open_tokens(home.settings, "new").leased(SystemClock()):
        pass  # the file is there
    with signing_in(home.settings, "new", state=home.state) as login:
        with unwritable(login.place), pytest.raises(StorageError, match=r"could not be read or written.*disk is full"):
            login.ask(SCOPES)
        assert service.count("/oauth/clients") == 0
        login.ask(SCOPES)
    assert service.count("/oauth/clients") == 1


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"state": "another"}, "does not belong to this sign-in"),
        ({"iss": "https://evil.example"}, "comes from https://evil.example"),
        (
            {"code": None, "error": "access_denied", "error_description": "No, thank\x00 you"},
            r"access_denied: No, thank.* you.*refused",
        ),
        (
            {"code": None, "error": "access_denied", "state": None},
            "does not belong to this sign-in .it has no `state`.",
        ),
        ({"state": None}, "does not belong to this sign-in .it has no `state`."),
        ({"code": None, "error": "access_denied"}, "refused on the consent page"),
        ({"code": None, "error": "invalid_target"}, "does not know itself by the address in base_url"),
        ({"code": None, "error": "invalid_scope"}, "may not ask for these scopes"),
        ({"code": None, "error": "unauthorized_client"}, "may not sign anybody in"),
        ({"code": None, "error": "server_error"}, "later"),
        ({"code": None}, "neither a code nor an error"),
        ({"code": "made up"}, "invalid_grant"),
    ],
)
def test_an_answer_that_is_refused(visit: Visit, changes: dict[str, str | None], expected: str) -> None:
    """RFC 6749, 4.1.2.1 and 10.12; RFC 9207. The stored sign-in stays."""
    home, service = visit()
    grant = sign_in(home, service)
    with pytest.raises(BookferryError, match=expected):
        sign_in(home, service, **changes)
    assert home.grant == grant


@pytest.mark.parametrize(
    ("refusal", "kind", "expected"),
    [
        ((400, b'{"error": "invalid_grant"}'), SignInError, "is over"),
        ((400, b'{"error": "invalid_scope"}'), SignInError, "does not give a token"),
        ((400, b'{"error": {"code": "invalid_grant", "message": "gone"}}'), SignInError, "invalid_grant: gone"),
        ((400, b'{"error": "invalid_target"}'), ConfigurationError, "base_url"),
        ((400, b"<html>"), SignInError, "400 Bad Request"),
        ((404, b""), ConfigurationError, "no authorization server"),
        ((200, b"<html>"), TemporaryError, "is not JSON"),
        ((200, b"[]"), TemporaryError, "no JSON object"),
        ((200, b'{"access_token": 5}'), TemporaryError, "without a usable access_token"),
        ((200, b'{"access_token": "a\\nb"}'), TemporaryError, "without a usable access_token"),
        ((200, b'{"access_token": "a", "token_type": "mac"}'), TemporaryError, "a token of the type mac"),
        ((500, b"<html>"), TemporaryError, "may still be good"),
        ((400, b'{"error": "temporarily_unavailable"}'), TemporaryError, "may still be good"),
        ((429, b""), TemporaryError, "Too Many Requests"),
    ],
)
def test_a_refresh_that_is_refused(
    expired: Visit, refusal: tuple[int, bytes], kind: type[BookferryError], expected: str
) -> None:
    """Each message says what to do; no response counts as a success, and no message shows a secret."""
    home, service = expired()
    grant = home.grant
    service.liberties.refusal = refusal
    with home.client(clock=ManualClock(5_000.0)) as client, pytest.raises(kind, match=expected) as caught:
        client.get(f"{client.api_url}/publications")
    assert grant.refresh_token
    assert grant.refresh_token not in str(caught.value)
    if kind is TemporaryError:  # whatever it was, it has passed
        service.liberties.refusal = None
        assert home.read().status_code == 200


def test_a_token_for_something_else(expired: Visit) -> None:
    """service.md#errors: "audience mismatch". No refresh is wasted on it."""
    home, service = expired(Liberties(challenge='Bearer error="invalid_token", error_description="audience mismatch"'))
    with pytest.raises(SignInError, match=r"audience mismatch.*REST API.*bookferry login new"):
        home.read()
    assert service.tokens_asked("refresh_token") == []


@pytest.mark.long
def test_tokens_that_die_early_cost_refreshes_and_no_person(visit: Visit) -> None:
    """Each token is good for one request: the library is read all the same, and the next one is as good as the first."""
    home, service = visit()
    sign_in(home, service)
    with home.client() as client:
        for _ in range(3 * MAX_REJECTED):
            assert client.get(f"{client.api_url}/publications").status_code == 200
            service.access.clear()
    assert home.grant.refreshes == 3 * MAX_REJECTED - 1


@pytest.mark.long
def test_a_token_that_ends_in_the_middle_of_200_pages(visit: Visit) -> None:
    """I3: a 401 costs one refresh and no page, with many pages in flight."""
    home, service = visit()
    sign_in(home, service)
    record_count = 0
    with home.client() as client:
        listing = Listing(client, ["publications"])
        for page in listing.pages():
            record_count += len(page.records)
            if page.number == 100:
                with service.lock:
                    service.access.clear()
    assert (record_count, listing.facts.pages, home.grant.refreshes) == (10_000, 200, 1)
    assert len(service.tokens_asked("refresh_token")) == 1


@pytest.mark.parametrize(
    ("refusal", "expected", "requests"),
    [
        ((502, b""), "502", MOST_TRIES),
        ((429, b""), "Too Many Requests", TRIES_WITHOUT_EFFECT),
        ((200, b'{"access_token": "a", "token_type": "mac"}'), "the type mac", 1),
        ((200, b" " * (MAX_BODY + 1)), "more than 64 MiB", 1),
    ],
)
def test_a_page_is_not_read_around_a_sign_in_that_cannot_be_renewed(
    expired: Visit, refusal: tuple[int, bytes], expected: str, requests: int
) -> None:
    """Each smaller page, and each further address of the list, would ask for a token again, for a minute."""
    home, service = expired()
    service.liberties.refusal = refusal
    with home.client(clock=ManualClock()) as client, pytest.raises(TemporaryError, match=expected):
        next(Listing(client, ["publications/all", "publications"]).pages())
    assert len(service.tokens_asked("refresh_token")) == requests


def test_a_write_is_not_unclear_where_its_sign_in_cannot_be_renewed(expired: Visit) -> None:
    """I8: nothing of it was sent, so nothing is looked up."""
    home, service = expired()
    service.liberties.refusal = (200, b'{"access_token": "a", "token_type": "mac"}')
    with home.client() as client, pytest.raises(TemporaryError, match="the type mac"):
        client.write("POST", "publications", {})


def test_a_token_is_renewed_ahead_of_its_end(visit: Visit) -> None:
    """So that no request has to be refused first; while the library cannot renew it, the old one is used to its end."""
    home, service = visit()
    with signing_in(home.settings, "new", state=home.state, clock=(clock := ManualClock(5_000.0))) as login:
        question = login.ask(SCOPES)
        login.finish(question, answer_in(service.authorize(question.url)))
    with home.client(clock=clock) as client:
        clock.sleep(3600 - 301)
        client.get(f"{client.api_url}/publications")
        assert home.grant.refreshes == 0
        clock.sleep(2)
        service.liberties.refusal = (503, b"")
        client.get(f"{client.api_url}/publications")
        assert home.grant.refreshes == 0
        service.liberties.refusal = None
        clock.sleep(60)
        client.get(f"{client.api_url}/publications")
        assert home.grant.refreshes == 1
        assert home.grant.left(clock) == pytest.approx(3600, abs=5)


def test_a_refresh_is_noted_before_it_leaves_and_kept_before_it_is_used(expired: Visit) -> None:
    """I3: if the process dies between, the next one knows that a response may be lost; the new token is durable before its first use."""
    home, service = expired()
    noted: list[float | None] = []
    used: list[tuple[str, str]] = []
    issue, handle = service.token, service.api

    def token(request: Any) -> Any:
        noted.append(home.stored.refreshing_since)
        return issue(request)

    def api(request: Any) -> Any:
        used.append((request.headers["authorization"].removeprefix("Bearer "), home.grant.access_token))
        return handle(request)

    service.token, service.api = token, api  # type: ignore[method-assign]
    assert home.read().status_code == 200
    assert (len(noted), noted[0] is None, home.stored.refreshing_since) == (1, False, None)
    [(old, _), (new, stored)] = used
    assert new == stored != old
