"""The client as a whole: one error for each kind of response, and no secret in any of them."""

from __future__ import annotations

import base64
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.errors import (
    AccessDeniedError,
    BookferryError,
    ExitStatus,
    ForeignOriginError,
    ProtocolError,
    RefusedError,
    SignInError,
    SignInPageError,
    TemporaryError,
)
from pipelines.service.client import Waiting, open_client
from pipelines.service.http.budget import Budget
from pipelines.service.listing.listing import Listing
from pipelines.settings.config_file import load_settings
from pipelines.state.local import LocalState
from tests.sandbox.process import SandboxProcess
from tests.service.conftest import PASSWORD, USER, ClientFor, Serve
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Answer, Received, Script
from tests.state_places import slots_taken

ERROR = {"error": {"code": "InsufficientScope", "message": "Ask for more"}}


@pytest.mark.parametrize(
    ("status", "error", "message", "exit_status"),
    [
        (401, SignInError, r"answered 401: the service does not accept the sign-in \(Insuff.*Check user name", 4),
        (403, AccessDeniedError, r"answered 403: this account may not read that \(Insuff.*Ask an administrator", 4),
        (404, RefusedError, r"answered 404 Not Found \(InsufficientScope: Ask for more\)\.", 1),
        (422, RefusedError, "answered 422 Unprocessable Entity", 1),
        (418, RefusedError, "answered 418", 1),
        (429, TemporaryError, "failed after 30 tries", 1),
        (500, TemporaryError, "failed after 7 tries .* last: 500 Internal Server Error", 1),
        (501, ProtocolError, "answered 501 Not Implemented .*, which the API does not document", 1),
        (204, ProtocolError, "answered 204 No Content, which the API does not document", 1),
        (206, ProtocolError, "answered 206 Partial Content", 1),
        (304, ProtocolError, "answered 304 Not Modified", 1),
        (302, SignInPageError, "redirects to .*/login, a page for people", 4),
    ],
)
def test_each_kind_of_answer_has_its_error(
    *, serve: Serve, client_for: ClientFor, status: int, error: type[BookferryError], message: str, exit_status: int
) -> None:
    """service.md#errors: one error class for each kind of remedy, with its exit status."""
    body = b"" if status in (204, 304) else ERROR
    headers = {"Location": "/login"} if status == 302 else {}
    server = serve(lambda _: Answer(body, status=status, headers=headers))
    with pytest.raises(error, match=message) as caught:
        client_for(server.url).get(f"{server.url}/api/v2/publications", {"page": 1})
    assert type(caught.value) is error
    assert caught.value.exit_status == ExitStatus(exit_status)
    assert f"GET {server.url}/api/v2/publications?page=1" in str(caught.value)


def test_a_question_without_a_sign_in_carries_none(serve: Serve, client_for: ClientFor) -> None:
    """I2: a request without a sign-in may go to the documentation beside the API."""
    server = serve(lambda _: Answer(b"<html>", headers={"content-type": "text/html"}))
    client = client_for(server.url)
    assert client.ask(f"{server.url}/api", signed_in=False).content == b"<html>"
    assert "authorization" not in server.received[0].headers
    with pytest.raises(ForeignOriginError):
        client.ask(f"{server.url}/api")


def everything_about(error: BaseException) -> str:
    """Returns everything that a person, a log or Dagster's event log can see of an exception and its causes."""
    texts = traceback.format_exception(error)
    cause: BaseException | None = error
    while cause is not None:
        texts += [str(cause), repr(cause), repr(cause.args), repr(vars(cause))]
        cause = cause.__cause__
    return "\n".join(texts)


def echo(request: Received) -> str:
    """A response of a careless service that repeats the request."""
    return f"{request.method} {dict(request.headers)} {list(request.headers.raw)} password={PASSWORD} {PASSWORD}"


CARELESS: dict[str, Script] = {
    "error body": lambda r: Answer({"error": {"code": "Unauthorized", "message": echo(r)}}, status=401),
    "server error": lambda r: Answer({"error": {"code": PASSWORD, "message": echo(r)}}, status=500),
    "refusal": lambda r: Answer({"error": {"code": PASSWORD, "message": echo(r)}}, status=404),
    "redirect": lambda r: Answer(status=302, headers={"Location": f"http://{USER}:{PASSWORD}@h/?{echo(r)}"}),
    "link": lambda r: Answer({"records": []}, headers={"Link": f"<http://h/{PASSWORD}?{echo(r)}>; rel=next"}),
    "broken link": lambda _: Answer({"records": []}, headers={"Link": f"<http://[:{PASSWORD}:x/>; rel=next"}),
    "status line": lambda _: Answer(raw=f"HTTP/1.1 503 {PASSWORD}\r\n\r\n".encode()),
    "no HTTP": lambda r: Answer(raw=echo(r).encode()),
    "retry-after": lambda _: Answer(status=503, headers={"Retry-After": PASSWORD}),
    "packing": lambda _: Answer(b"[]", headers={"Content-Encoding": PASSWORD}),
    "not a listing": lambda r: Answer({"data": echo(r)}),
}


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Writes a bookferry.toml for a base_url, with the sandbox's sign-in in the environment."""

    def write(base_url: str, further_tables: str = "") -> Path:
        monkeypatch.setenv("TEST_USER", USER)
        monkeypatch.setenv("TEST_PASSWORD", PASSWORD)
        path = tmp_path / "bookferry.toml"
        path.write_text(
            f'[tenants.old]\nbase_url = "{base_url}"\napi = "v2"\nusername_env = "TEST_USER"\n'
            f'password_env = "TEST_PASSWORD"\nrequests_per_minute = 100000\n{further_tables}'
        )
        return path

    return write


@pytest.mark.parametrize("name", CARELESS)
def test_no_error_shows_a_credential(
    *,
    serve: Serve,
    configured: Callable[[str], Path],
    tmp_path: Path,
    clock: ManualClock,
    name: str,
) -> None:
    """I10: no secret, even if the service repeats what it received, in any part of its response."""
    server = serve(CARELESS[name])
    settings, waits = load_settings(configured(server.url)), list[Waiting]()
    with (
        open_client(
            settings, "old", state=LocalState(tmp_path / "state.db"), on_wait=waits.append, clock=clock
        ) as client,
        pytest.raises(BookferryError) as caught,
    ):
        list(Listing(client, ["publications"]).pages())
    basic = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    printed = everything_about(caught.value) + repr(waits) + repr(client) + repr(vars(client))
    assert server.received[0].headers["authorization"] == f"Basic {basic}"
    assert not [secret for secret in (PASSWORD, basic, basic.rstrip("=")) if secret in printed]


def test_open_client_with_a_session_cookie(
    sandbox: SandboxProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """service.md#v2: the session cookie `_library_session` of a signed-in browser session."""
    monkeypatch.setenv("TEST_COOKIE", sandbox.session_cookie())
    path = tmp_path / "bookferry.toml"
    path.write_text(
        f'[tenants.old]\nbase_url = "{sandbox.base_url()}"\napi = "v2"\nsession_cookie_env = "TEST_COOKIE"\n'
    )
    with open_client(load_settings(path), "old", state=LocalState(tmp_path / "state.db")) as client:
        assert client.get(f"{client.api_url}/publications").headers["x-total"] == "120"
    assert sandbox.counts()["requests"] == client.requests == 1


def test_both_api_versions_of_a_library_share_one_budget(
    sandbox: SandboxProcess, configured: Callable[[str, str], Path], tmp_path: Path
) -> None:
    """I1: the budget is shared: requests of another tenant with the same base_url count."""
    second_tenant = f'[tenants.new]\nbase_url = "{sandbox.base_url()}/"\napi = "v3"\nrequests_per_minute = 7\n'
    settings = load_settings(configured(sandbox.base_url(), second_tenant))
    with open_client(settings, "old", state=LocalState(tmp_path / "state.db")) as client:
        client.get(f"{client.api_url}/publications")
        assert client.requests_per_minute == 7
    assert slots_taken(Budget(LocalState(tmp_path / "state.db"), *settings.budget_of("new"))) == 1
