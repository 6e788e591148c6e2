"""service.md#overview, #v2 and #deprecation: the two versions and their descriptions."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import httpx
import pytest
import yaml

from tests.spec.conftest import Library, links, plain_transport


@pytest.mark.parametrize(
    ("path", "announced"),
    [
        ("/publications/all", "import_state"),
        ("/publications/1", "import_state"),
        ("/publications?isbn=1&author=x", "import_state, isbn"),
    ],
)
def test_v2_announces_what_is_deprecated(library: Library, path: str, announced: str) -> None:
    """service.md#deprecation: v2 names the field `import_state` and flat identifier parameters in `X-API-Deprecation`."""
    assert library.v2().get(path).headers["X-API-Deprecation"] == announced
    assert "X-API-Deprecation" not in library.v3().get(path).headers


FLAT = {"doi": "10.1/1", "isbn": "9780306406157", "issn": "0028-0836", "arxiv_id": "1606.00931", "pmid": "1"}


@pytest.mark.parametrize("names", [*([name] for name in FLAT), ["pmid", "doi"], list(FLAT), ["title"]])
def test_v2_announces_the_flat_fields_that_are_written(empty: Library, names: list[str]) -> None:
    """service.md#deprecation: v2 names the flat identifier parameters of a create and of a change. Assumption: in the schema's order."""
    values = {**FLAT, "title": "A title"}
    client = empty.v2()
    payload = {name: values[name] for name in names}
    expected = ", ".join(["import_state", *(name for name in FLAT if name in names)])
    created = client.post("/publications", json={"title": "Another", **payload})
    changed = client.patch(f"/publications/{created.json()['id']}", json=payload)
    removed = client.patch(
        f"/publications/{created.json()['id']}", json={name: values.get(name) and "" for name in FLAT if name in names}
    )
    assert [answer.status_code for answer in (created, changed, removed)] == [200] * 3
    assert [answer.headers["X-API-Deprecation"] for answer in (created, changed, removed)] == [expected] * 3


@pytest.mark.parametrize("status", [410, 404])
def test_v2_ends_and_v3_stays(library: Library, status: int) -> None:
    """service.md#shutdown: once v2 has ended it reads, writes and describes nothing; v3 has the same records. Assumption: its status."""
    client = library.v2()
    library.change(variations={"v2_ended": status})
    answers = [
        client.get("/publications"),
        client.patch("/publications/1", json={"title": "x"}),
        client.get("/swagger.yaml"),
    ]
    assert [answer.status_code for answer in answers] == [status] * 3
    assert library.v3().get("/publications/1").json()["title"] != "x"
    library.change(variations={"v2_ended": 0})
    assert client.get("/publications").headers["X-Total"] == "60"


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_a_tenant_may_have_a_subdomain(make_library: Callable[..., Library], version: str) -> None:
    """service.md#overview: {base_url} may be an assigned subdomain. Then it has no path, and every address is below it."""
    library = make_library(60)
    port = urlsplit(library.origin).port
    host = f"library.service.test:{port}" if port else "library.service.test"
    sign_in = {"auth": (library.tenant.account.email, library.tenant.account.password)}
    if version == "v3":
        sign_in = {"headers": {"Authorization": f"Bearer {library.token()}"}}
    with httpx.Client(base_url=library.origin, transport=plain_transport(), **sign_in) as client:
        client.headers["Host"] = host
        listed = client.get(f"/api/{version}/publications")
        assert listed.headers["X-Total"] == "60"
        assert links(listed)["next"] == f"http://{host}/api/{version}/publications?page=2"
        assert client.get(f"/library/api/{version}/publications").status_code == 404
        description = yaml.safe_load(client.get(f"/api/{version}/swagger.yaml").text)
        assert description["servers"] == [{"url": f"http://{host}/api/{version}"}]
        for stranger in ("other.service.test", "service.test", "127.0.0.1"):
            assert client.get(f"/api/{version}/publications", headers={"Host": stranger}).status_code == 404
