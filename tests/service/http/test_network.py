"""The innermost transport: proxies, certificates, and an end that does not wait (I2, I10)."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from pipelines.errors import ConfigurationError, TemporaryError
from pipelines.service.client import LibraryClient
from pipelines.service.http.budget import Budget
from pipelines.service.http.network import NetworkTransport, proxy_for
from pipelines.service.http.transport import BudgetTransport
from pipelines.state.local import LocalState
from tests.service.conftest import PASSWORD
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Answer, Script, ScriptedServer

Serve = Callable[[Script], ScriptedServer]

LIBRARY = "https://library.example.org"


@pytest.mark.parametrize(
    ("environment", "base_url", "expected"),
    [
        ({}, LIBRARY, None),
        ({"https_proxy": "http://proxy:3128"}, LIBRARY, "http://proxy:3128"),
        ({"HTTPS_PROXY": "proxy:3128"}, LIBRARY, "http://proxy:3128"),
        ({"http_proxy": "http://proxy:3128"}, LIBRARY, None),
        ({"all_proxy": "http://proxy:3128"}, LIBRARY, "http://proxy:3128"),
        ({"https_proxy": "http://one", "all_proxy": "http://two"}, LIBRARY, "http://one"),
        ({"https_proxy": "http://proxy", "no_proxy": "example.org"}, LIBRARY, None),
        ({"https_proxy": "http://proxy", "no_proxy": "library.example.org:8443"}, f"{LIBRARY}:8443", None),
        ({"https_proxy": "http://proxy", "no_proxy": "library.example.org:8443"}, LIBRARY, "http://proxy"),
        ({"https_proxy": "http://proxy", "no_proxy": "*"}, LIBRARY, None),
        ({"http_proxy": "http://proxy", "all_proxy": "http://proxy"}, "http://127.0.0.1:8000/library", None),
        ({"http_proxy": "http://proxy"}, "http://localhost:8000", None),
        ({"http_proxy": "http://proxy"}, "http://[::1]:8000", None),
        ({"https_proxy": "http://proxy"}, "https://127.0.0.1:8443", None),
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
    assert {(one.method, one.target) for one in proxy.received} == {("CONNECT", "library.example.org:443")}
    assert not any("authorization" in one.headers for one in proxy.received)
    assert client.requests == 0
    assert Budget(LocalState(tmp_path / "state.db"), LIBRARY, 1, ManualClock()).used() == 0


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Creates a self-signed certificate for localhost, and its key."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415  not everybody has it
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "library.test")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    encoding, secret = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "cert.pem").write_bytes(made.public_bytes(encoding))
    (folder / "key.pem").write_bytes(key.private_bytes(encoding, secret, serialization.NoEncryption()))
    return folder / "cert.pem", folder / "key.pem"


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


@contextlib.contextmanager
def silent_server() -> Iterator[tuple[str, threading.Event]]:
    """Accepts, reads, and never responds; signals when something arrived."""
    arrived = threading.Event()
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    taken.append(listener.accept()[0])
                    if taken[-1].recv(65536):
                        arrived.set()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", arrived
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
    for one in taken:
        one.close()


def test_close_ends_the_wait_of_another_thread() -> None:
    """A stopped run must not wait for a timeout, nor leave a socket open."""
    failed: list[BaseException] = []

    def ask(network: NetworkTransport, url: str) -> None:
        try:
            network.handle_request(httpx.Request("GET", f"{url}/", headers={"host": "x"}))
        except httpx.TransportError as error:
            failed.append(error)

    with silent_server() as (url, arrived):
        network = NetworkTransport(url)
        thread = threading.Thread(target=ask, args=(network, url), daemon=True)
        thread.start()
        assert arrived.wait(100)
        network.close()
        thread.join(200)
        assert not thread.is_alive(), "the server never answers, and nothing limits the wait for it"
    assert len(failed) == 1


def test_nothing_leaves_after_close(serve: Serve, tmp_path: Path, clock: ManualClock) -> None:
    """I1: a thread that got its slot just when the run was stopped gives the slot back."""
    server = serve(lambda _: Answer([]))
    shared = Budget(LocalState(tmp_path / "state.db"), "library", 1, clock)
    ring = BudgetTransport(NetworkTransport(server.url), budget=shared, clock=clock)
    ring.close()
    with pytest.raises(TemporaryError, match="stopped before this request was sent"):
        ring.handle_request(httpx.Request("GET", f"{server.url}/", headers={"host": "x"}))
    assert (server.received, shared.used()) == ([], 0)


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
