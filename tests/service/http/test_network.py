"""The innermost transport: proxies, certificates, and an end that does not wait (I2, I10)."""

from __future__ import annotations

import logging
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from pipelines.errors import ConfigurationError, TemporaryError
from pipelines.service.client import LibraryClient
from pipelines.service.http.budget import Budget
from pipelines.service.http.network import NetworkTransport, proxy_for
from pipelines.service.http.transport import BudgetTransport
from pipelines.state.local import LocalState
from tests.service.conftest import PASSWORD, Serve
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Answer, ScriptedServer
from tests.state_places import slots_taken

LIBRARY = "https://library.example.org"


@pytest.mark.parametrize(
    ("environment", "base_url", "expected"),
    [
        ({}, LIBRARY, None),
        ({"HTTPS_PROXY": "proxy:3128"}, LIBRARY, "http://proxy:3128"),
        ({"http_proxy": "http://proxy:3128"}, LIBRARY, None),
        ({"https_proxy": "http://one", "all_proxy": "http://two"}, LIBRARY, "http://one"),
        ({"https_proxy": "http://proxy", "no_proxy": "library.example.org:8443"}, f"{LIBRARY}:8443", None),
        ({"https_proxy": "http://proxy", "no_proxy": "library.example.org:8443"}, LIBRARY, "http://proxy"),
        ({"http_proxy": "http://proxy", "all_proxy": "http://proxy"}, "http://127.0.0.1:8000/library", None),
        ({"http_proxy": "http://proxy"}, "http://[::1]:8000", None),
    ],
)
def test_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], base_url: str, expected: str | None
) -> None:
    """As curl does; but unencrypted requests to this machine never go to a proxy, because they do not leave the machine."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(base_url) == expected


@pytest.mark.parametrize("proxy", ["ftp://me:hunter2@proxy:3128", "http://me:hunter2@proxy:port", "socks5://proxy"])
def test_an_unusable_proxy_is_a_mistake_in_the_environment(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    """I10: the message says what to correct, without the proxy's password."""
    monkeypatch.setenv("https_proxy", proxy)
    with pytest.raises(ConfigurationError, match="Correct https_proxy or all_proxy") as caught:
        NetworkTransport(LIBRARY)
    assert "hunter2" not in f"{caught.value!r}"


def test_a_proxy_sees_neither_sign_in_nor_request(
    serve: Serve, tmp_path: Path, client_for: Callable[..., LibraryClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """I2, I1: the proxy refuses the tunnel; the library's credentials stay here and its budget is untouched."""
    proxy = serve(lambda _: Answer(status=407))
    monkeypatch.setenv("https_proxy", proxy.url)
    client = client_for(LIBRARY)
    with pytest.raises(TemporaryError, match="the proxy refused: 407 Proxy Authentication Required"):
        client.get(f"{LIBRARY}/api/v2/publications")
    assert {(request.method, request.target) for request in proxy.received} == {("CONNECT", "library.example.org:443")}
    assert not any("authorization" in request.headers for request in proxy.received)
    assert client.requests == 0
    assert slots_taken(Budget(LocalState(tmp_path / "state.db"), LIBRARY, 1, ManualClock())) == 0


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Creates a self-signed certificate for this machine, and its key."""
    certificate, key = (tmp_path_factory.mktemp("tls") / name for name in ("cert.pem", "key.pem"))
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=library.test",
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout",
            key,
            "-out",
            certificate,
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key


@pytest.fixture
def secure_server(serve: Serve, certificate: tuple[Path, Path]) -> ScriptedServer:
    """A library behind TLS."""
    server = serve(lambda _: Answer([]))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server.secure(context)
    return server


def test_a_certificate_that_is_not_trusted_gets_no_sign_in(
    secure_server: ScriptedServer, client_for: Callable[..., LibraryClient], clock: ManualClock
) -> None:
    """I2: at once, in one message with the remedy, and without a single request."""
    client, begun = client_for(secure_server.url), clock.monotonic()
    with pytest.raises(ConfigurationError, match=r"not trusted.*your sign-in was not sent.*SSL_CERT_FILE"):
        client.get(f"{secure_server.url}/api/v2/publications")
    assert (client.requests, secure_server.received, clock.monotonic()) == (0, [], begun)


def test_a_certificate_authority_can_be_named(
    secure_server: ScriptedServer,
    certificate: tuple[Path, Path],
    client_for: Callable[..., LibraryClient],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The remedy of the message works."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    client = client_for(secure_server.url)
    assert client.get(f"{secure_server.url}/api/v2/publications").content == b"[]"
    assert client.requests == 1


def test_nothing_leaves_after_close(serve: Serve, tmp_path: Path, clock: ManualClock) -> None:
    """I1: a thread that got its slot just when the run was stopped gives the slot back."""
    server = serve(lambda _: Answer([]))
    shared = Budget(LocalState(tmp_path / "state.db"), "library", 1, clock)
    ring = BudgetTransport(NetworkTransport(server.url), budget=shared, clock=clock)
    ring.close()
    with pytest.raises(TemporaryError, match="stopped before this request was sent"):
        ring.handle_request(httpx.Request("GET", f"{server.url}/", headers={"host": "x"}))
    assert (server.received, slots_taken(shared)) == ([], 0)


def test_a_connection_that_is_made_during_close_is_closed(serve: Serve) -> None:
    """The same for a thread that was connecting: no request, and no socket left open (a warning fails the test)."""
    server = serve(lambda _: Answer([]))
    network = NetworkTransport(server.url)

    def close_meanwhile(event: str, _info: object) -> None:
        if event.endswith("connect_tcp.started"):
            network.close()

    request = httpx.Request("GET", f"{server.url}/", headers={"host": "x"}, extensions={"trace": close_meanwhile})
    with pytest.raises(TemporaryError, match="stopped"):
        network.handle_request(request)
    assert server.received == []


def test_no_log_of_a_library_shows_cookies_or_addresses(
    serve: Serve, client_for: Callable[..., LibraryClient], caplog: pytest.LogCaptureFixture
) -> None:
    """I10: httpcore logs the headers of responses at DEBUG, and httpx logs every address at INFO."""
    caplog.set_level(logging.DEBUG)
    server = serve(lambda _: Answer([], headers={"Set-Cookie": "_library_session=planted"}))
    client_for(server.url).get(f"{server.url}/api/v2/publications?signature=abc")
    assert not any(word in caplog.text for word in ("planted", "signature", PASSWORD))


@pytest.mark.parametrize("host", ["xn--n3h.example.org", "☃.example.org"])
def test_a_host_to_which_nothing_can_be_sent(host: str) -> None:
    with pytest.raises(ConfigurationError, match=r"no name to which a request can be sent\. Correct base_url"):
        proxy_for(f"https://{host}")
