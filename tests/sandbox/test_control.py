"""The control endpoint and the variations (sandbox/README.md)."""

from __future__ import annotations

import json

import httplink
import httpx
import pytest

from tests.sandbox.conftest import Service
from tests.sandbox.test_paging import links


def control(service: Service, method: str, path: str, body: object = None) -> httpx.Response:
    with service.client(auth=None) as client:
        return client.request(method, f"http://service.test/_control/{path}", json=body)


@pytest.mark.parametrize(
    "body",
    [
        {"latency": -1}, {"latency": "1"}, {"latency": True}, {"requests_per_minute": 1.5}, {"url_seconds": 0},
        {"unknown": 1}, {"tenant": "nobody"}, {"variations": []}, {"variations": {"link": "sideways"}},
        {"variations": {"x_total_error": None}}, {"variations": {"extra_fields": 1}}, {"latency": float("inf")}, ["x"],
    ],
)  # fmt: skip
def test_impossible_settings_are_refused_and_nothing_changes(library: Service, body: object) -> None:
    before = library.tenant.settings
    with library.client(auth=None) as client:
        answer = client.put("http://service.test/_control/settings", content=json.dumps(body))
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "UnprocessableEntity"
    assert library.tenant.settings == before


def test_reset_brings_back_the_start(library: Service) -> None:
    library.change(latency=3)
    control(library, "POST", "faults", {"fault": "reset"})
    library.tenant.rate.receive(0)
    assert control(library, "POST", "reset", {"parts": ["counts"]}).json()["library"]["requests"] == 0
    assert library.tenant.settings.latency == 3
    control(library, "POST", "reset")
    assert library.tenant.settings.latency == 0
    assert control(library, "GET", "faults").json() == {"library": []}
    assert control(library, "POST", "reset", {"parts": ["data"]}).status_code == 422


def test_requests_are_remembered_without_their_secrets(library: Service) -> None:
    library.get("/publications/1?x=1")
    library.get("/publications/0")
    seen = control(library, "GET", "requests?tenant=library").json()
    assert [(each["method"], each["path"], each["query"], each["status"], each["sign_in"]) for each in seen] == [
        ("GET", "/api/v2/publications/1", "x=1", 200, "Basic"),
        ("GET", "/api/v2/publications/0", "", 404, "Basic"),
    ]


@pytest.mark.parametrize("form", ["quoted", "several", "extension", "lines", "parameters", "other_ends"])
def test_every_form_of_links_says_the_same(library: Service, form: str) -> None:
    """RFC 8288: the links of each form are those of the plain one, as another library reads them; the others are traps."""
    plain = httplink.parse_link_header(library.get("/publications?page=2").headers["Link"])
    library.vary(link_form=form)
    header = library.get("/publications?page=2").headers["Link"].replace(";crossorigin", "")
    found = {}
    for link in httplink.parse_link_header(header.replace("rev=next", "rel=rev")).links:
        attributes = dict(reversed([(name.lower(), value) for name, value in link.attributes]))
        if not attributes.get("anchor"):
            found |= dict.fromkeys(attributes["rel"].lower().split(), link.target)
    assert {rel: found[rel] for rel in ("first", "prev", "next", "last")} == {
        rel: plain[rel].target for rel in ("first", "prev", "next", "last")
    }


def test_no_links(library: Service) -> None:
    library.vary(link="none")
    assert "Link" not in library.get("/publications").headers


def test_a_next_page_on_a_foreign_origin(library: Service) -> None:
    library.vary(link="foreign", foreign_origin="https://other.example/")
    found = links(library.get("/publications?page=2"))
    assert found["next"] == "https://other.example/elsewhere/library/api/v2/publications?page=3"
    assert found["first"].startswith(library.base_url)


def test_no_total_and_a_wrong_total(library: Service) -> None:
    library.vary(x_total="absent")
    assert "X-Total" not in library.get("/publications").headers
    library.vary(x_total="sent", x_total_error=-3)
    assert library.get("/publications").headers["X-Total"] == "5442"


def test_the_backup_list_may_be_missing_or_bare(library: Service) -> None:
    """service.md#not-shown: the version of `/publications/all`, and its parameters."""
    library.vary(all_endpoint="missing")
    assert library.get("/publications/all").json()["error"]["code"] == "RecordNotFound"
    library.vary(all_endpoint="bare")
    assert [record["id"] for record in library.get("/publications/all?per_page=2").json()] == [1, 2]


def test_another_order(library: Service) -> None:
    library.vary(order="descending")
    assert [record["id"] for record in library.get("/publications?per_page=2").json()["records"]] == [5445, 5444]


def test_further_fields_by_variation(library: Service) -> None:
    """service.md#not-shown: further fields of a publication."""
    plain = library.get("/publications/1").json()
    library.vary(extra_fields=True)
    extra = library.get("/publications/1").json()
    assert plain.items() <= extra.items()
    assert set(extra) - set(plain) == {"pmcid", "language", "links", "review"}


def test_an_inexact_search(library: Service) -> None:
    library.vary(identifier_search="contains")
    found = library.get("/publications?doi=10.1186/s12874").json()["records"]
    assert {record["doi"][:14] for record in found} == {"10.1186/s12874"}
