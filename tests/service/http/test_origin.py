"""I2: the sign-in goes to the tenant's own scheme, host, port and `/api/` or `/oauth/` path, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote, urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import (
    BookferryError,
    ForeignOriginError,
    ProtocolError,
    SignInError,
    UnclearError,
)
from pipelines.service.client import SessionCookieAuth
from pipelines.service.http.transport import OriginTransport
from pipelines.service.listing.listing import Listing
from pipelines.settings.credentials import SessionCookie
from tests.service.conftest import ClientFor, Serve
from tests.service.scripted import Answer, Received, Script

BASE = "https://library.example.org/main"


def goes_through(url: str, base_url: str = BASE) -> bool:
    """Whether an origin-checked transport sends a request to `url`."""
    requests: list[httpx.Request] = []

    def take(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200)

    pinned = OriginTransport(httpx.MockTransport(take), base_url=base_url)
    try:
        pinned.handle_request(httpx.Request("GET", url))
    except ForeignOriginError:
        assert requests == []
        return False
    return True


OWN = [
    f"{BASE}/api/v2/publications",
    f"{BASE}/api/v3/publications/all?page=2#fragment",
    f"{BASE}/oauth/token",
    "https://library.example.org:443/main/api/v2/publications",
    "HTTPS://LIBRARY.example.org/main/api/v2/publications?next=https://elsewhere.example/../..",
]
FOREIGN = [
    "https://elsewhere.example/main/api/v2/publications",
    "https://library.example.org.elsewhere.example/main/api/v2/publications",
    "https://sub.library.example.org/main/api/v2/publications",
    "https://library.example.org./main/api/v2/publications",
    "http://library.example.org/main/api/v2/publications",
    "https://library.example.org:8443/main/api/v2/publications",
    "https://me@library.example.org/main/api/v2/publications",
    "https://library.example.org:443@elsewhere.example/main/api/v2/publications",
    "//elsewhere.example/main/api/v2/publications",
    "data:text/plain,/main/api/v2/publications",
    "file:///main/api/v2/publications",
    "https://library.example.org/api/v2/publications",
    "https://library.example.org/other/api/v2/publications",
    "https://library.example.org/main/apiv2",
    "https://library.example.org/main/storage/file.pdf?signature=abc",
    "https://library.example.org/main/api/../storage/file.pdf",
    "https://library.example.org/main/api/%2e%2e/storage/file.pdf",
    "https://library.example.org/main/api/..%2fstorage/file.pdf",
    "https://library.example.org/main/api/%252e%252e/storage/file.pdf",
    "https://library.example.org/main/api/..;x=1/storage/file.pdf",
    "https://library.example.org/main/api/..\\storage",
    "https://library.example.org/main%2Fapi/v2/publications",
    "https://library.example.org/main/api",
    "https://[::1]/main/api/v2/publications",
]


@pytest.mark.parametrize("url", [*OWN, *FOREIGN])
def test_only_the_tenants_own_paths_are_allowed(url: str) -> None:
    """I2: API calls stay on scheme, host, port and path prefix; compared as in a browser, not letter by letter."""
    assert goes_through(url) is (url in OWN)


addresses = st.builds(
    lambda scheme, user, host, port, path, ending: f"{scheme}{user}{host}{port}{path}{ending}",
    st.sampled_from(["https://", "http://", "//", "HTTPS://", "https:", ""]),
    st.sampled_from(["", "", "me@", "me:pw@", "library.example.org@"]),
    st.sampled_from(["library.example.org", "LIBRARY.example.org", "elsewhere.example", "127.0.0.1", "[::1]"]),
    st.sampled_from(["", "", ":443", ":80", ":8443"]),
    st.sampled_from(["/main/api/", "/main/", "/main/oauth/", "/Main/api/", "/main/api/../", "/main/x/../api/"]),
    st.text(st.sampled_from("ab./%2eE;\\?#"), max_size=12),
)


@pytest.mark.long
@given(addresses)
def test_no_address_leaves_the_tenants_folder(address: str) -> None:
    """I2: every request stays below the tenant's own folder, also as another parser reads the address."""
    base = httpx.URL(f"{BASE}/api/v2/publications")
    try:
        url = str(base.join(address))
    except httpx.InvalidURL:
        return
    if goes_through(url):
        parts = urlsplit(url)
        assert (parts.scheme, parts.netloc.lower()) in {
            ("https", "library.example.org"),
            ("https", "library.example.org:443"),
        }
        assert parts.path.startswith(("/main/api/", "/main/oauth/"))
        assert ".." not in unquote(unquote(parts.path)).replace("\\", "/").split("/")


def page_with_link(link: str) -> Script:
    """A list whose first page leads to `link`."""

    def script(_: Received) -> Answer:
        return Answer({"records": [{"id": 1}]}, headers={"X-Total": "100", "Link": f'<{link}>; rel="next"'})

    return script


@pytest.mark.parametrize(
    "host",
    ["{other}", "//127.0.0.1:{other_port}", "http://me:pw@127.0.0.1:{other_port}", "https://127.0.0.1:{own_port}"],
)
@pytest.mark.parametrize("query", ["page=2&per_page=50", "page=2", "cursor=abc"])
def test_a_link_to_our_own_path_elsewhere_counts_as_ours(
    serve: Serve, client_for: ClientFor, host: str, query: str
) -> None:
    """Behind a proxy, a service names the host that it sees itself. Nothing is sent there (I2)."""
    foreign_server = serve(lambda _: Answer({"records": []}))
    address: list[str] = []

    def answer(request: Received) -> Answer:
        if request.query.get("page") == "2" or "cursor" in request.query:
            return Answer({"records": [{"id": 2}]}, headers={"x-total": "2"})
        return Answer({"records": [{"id": 1}]}, headers={"x-total": "2", "link": f'<{address[0]}>; rel="next"'})

    library = serve(answer)
    address.append(
        f"{host.format(other=foreign_server.url, other_port=foreign_server.port, own_port=library.port)}/api/v2/publications?{query}"
    )
    pages = list(Listing(client_for(library.url), ["publications"]).pages())
    assert [record for page in pages for record in page.ids] == [1, 2]
    assert foreign_server.received == []


@pytest.mark.parametrize(
    "link",
    [
        "{other}/elsewhere/api/v2/publications?page=2",
        "//127.0.0.1:{other_port}/elsewhere/api/v2/publications?page=2",
        "http://me:pw@127.0.0.1:{other_port}/elsewhere/api/v2/publications?page=2",
        "https://127.0.0.1:{own_port}/elsewhere/api/v2/publications?page=2",
        "http://localhost:{own_port}/elsewhere/api/v2/publications?page=2",
        "/storage/publications?page=2",
        "../../storage/publications?page=2",
        "%2e%2e/%2e%2e/storage/publications?page=2",
        "data:application/json,[]",
        "ftp://127.0.0.1:{own_port}/elsewhere/api/v2/publications?page=2",
    ],
)
def test_a_foreign_link_ends_the_listing_and_nothing_is_sent_there(
    serve: Serve, client_for: ClientFor, link: str
) -> None:
    """I2: a Link to another origin stops the run; both servers report what they received."""
    foreign_server = serve(lambda _: Answer({"records": []}))
    leads: list[Script] = []
    library = serve(lambda request: leads[0](request))  # noqa: PLW0108  its own address is known only when it runs
    leads.append(
        page_with_link(link.format(other=foreign_server.url, other_port=foreign_server.port, own_port=library.port))
    )
    client = client_for(library.url)
    with pytest.raises(ForeignOriginError, match="Nothing was sent there"):
        list(Listing(client, ["publications"]).pages())
    assert foreign_server.received == []
    assert [request.path for request in library.received] == ["/api/v2/publications"]
    assert client.requests == 1


def pages_behind(redirect: Callable[[Received], str | None], status: int = 301) -> Script:
    """A list of two pages; `redirect` says where a request is sent instead."""

    def script(request: Received) -> Answer:
        if (target := redirect(request)) is not None:
            return Answer(status=status, headers={"Location": target})
        page = int(request.query["page"])
        link = (
            f'<{request.path}?page=2&per_page=50>; rel="next"'
            if page == 1
            else '</api/v2/publications?page=1>; rel="first"'
        )
        return Answer({"records": [{"id": page}]}, headers={"x-total": "2", "link": link})

    return script


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize(
    "location",
    [
        *("{target}", "http://{host}{target}", "https://{host}{target}", "publications/", "{path}/"),
        "http://127.0.0.1:{other}{target}",
    ],
)
@pytest.mark.parametrize("slash", ["", "/"])
def test_a_redirect_that_changes_a_slash_is_followed(
    serve: Serve, client_for: ClientFor, status: int, location: str, slash: str
) -> None:
    """Also where it names another scheme or port, to which nothing is sent, or leaves out the parameters.

    Once for each list: a redirect costs budget, too.
    """
    foreign_server = serve(lambda _: Answer({"records": []}))

    def redirect(request: Received) -> str | None:
        if request.path.endswith("/"):
            return None
        query = request.target.partition("?")[2]
        facts = {"path": request.path, "target": f"{request.path}/?{query}", "host": request.headers["host"]}
        return location.format(**facts, other=foreign_server.port)

    library = serve(pages_behind(redirect, status))
    pages = list(Listing(client_for(library.url), [f"publications{slash}"]).pages())
    assert [record for page in pages for record in page.ids] == [1, 2]
    way = [] if slash else ["/api/v2/publications"]
    assert [request.path for request in library.received] == [*way, "/api/v2/publications/", "/api/v2/publications/"]
    assert {request.query["per_page"] for request in library.received} == {"50"}
    assert foreign_server.received == []


@pytest.mark.parametrize(
    "location",
    [
        "http://elsewhere.example{path}/",
        "http://{host}/storage/..{path}//",
        "http://{host}{path}/?page=7",
        "http://{host}/other{path}/",
        "http://{host}/api/v3/publications",
        "http://127.0.0.1:1{path}",
    ],
)
def test_no_other_redirect_is_followed(serve: Serve, client_for: ClientFor, location: str) -> None:
    """I2: another host, another folder, other parameters, no address."""
    library = serve(pages_behind(lambda request: location.format(path=request.path, host=request.headers["host"])))
    with pytest.raises(ProtocolError, match=r"redirects to http:.*correct base_url"):
        client_for(library.url).get(f"{library.url}/api/v2/publications?page=1")
    assert len(library.received) == 1
    circle = serve(pages_behind(lambda request: request.path.removesuffix("/") + "/" * (request.path[-1] != "/")))
    with pytest.raises(ProtocolError, match="back to it"):
        client_for(circle.url).get(f"{circle.url}/api/v2/publications?page=1")
    assert len(circle.received) == 2


SIGN_IN_PAGES = [
    "/login",
    "/users/sign_in?return_to=%2Fapi",
    "/session/new?return_to=%2Fapi",
    "/Account/Logon",
    "https://sso.example/",
    "https://login.example/common",
    "https://idp.example/saml2/?SAMLRequest=x",
    "https://elsewhere.example/api/auth/signin",
]
OTHER_PAGES = [
    "/",
    "/maintenance.html?return_to=%2Fapi",
    "/blog/index",
    "/authors",
    "/plans/upgrade",
    "https://status.example/",
    "https://design.example/catalog/index",
]


@pytest.mark.parametrize("target", [*SIGN_IN_PAGES, *OTHER_PAGES])
def test_a_redirect_to_a_page_for_people(serve: Serve, client_for: ClientFor, target: str) -> None:
    """A refused sign-in (exit status 4), or a service that is away: the page is named, and nothing is sent there."""
    library = serve(lambda _: Answer(status=302, headers={"Location": target}))
    shown = rf"redirects to \S*{re.escape(target.partition('?')[0])}, "
    with pytest.raises(BookferryError, match=shown) as caught:
        client_for(library.url).get(f"{library.url}/api/v2/publications")
    if target in SIGN_IN_PAGES:
        assert isinstance(caught.value, SignInError)
        assert re.search(r"a page for people to sign in: .*Check user name", str(caught.value))
    else:
        assert isinstance(caught.value, ProtocolError)
        assert "which is no API" in str(caught.value)
    assert "return_to" not in str(caught.value)
    assert len(library.received) == 1


@pytest.mark.parametrize(
    ("method", "kind"), [("POST", UnclearError), ("PATCH", ProtocolError), ("DELETE", ProtocolError)]
)
def test_a_write_is_never_sent_on(serve: Serve, client_for: ClientFor, method: str, kind: type[BookferryError]) -> None:
    """The error names where it would have gone."""
    library = serve(lambda request: Answer(status=308, headers={"Location": f"{request.path}/"}))
    with pytest.raises(kind, match="/api/v2/publications/"):
        client_for(library.url).write(method, "publications", {"title": "x"})
    assert len(library.received) == 1


@pytest.mark.parametrize("auth", [httpx.BasicAuth("me", "pw"), SessionCookieAuth(SessionCookie("ab12"))])
def test_cookies_set_by_answers_never_travel(serve: Serve, client_for: ClientFor, auth: httpx.Auth) -> None:
    """I2, I10: a session that a response starts must not replace our sign-in."""
    cookies = {"Set-Cookie": "_library_session=planted; Path=/; Domain=127.0.0.1"}
    library = serve(lambda _: Answer([], headers=cookies))
    client = client_for(library.url, auth=auth)
    for _ in range(2):
        client.get(f"{library.url}/api/v2/publications")
    assert library.received[0].headers == library.received[1].headers
    assert not any("planted" in value for value in library.received[1].headers.values())
