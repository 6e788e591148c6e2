"""service.md#errors."""

from __future__ import annotations

import pytest

from tests.sandbox.conftest import ORIGIN, Service


@pytest.mark.parametrize("number", ["0", "5446", "-1", "abc", "1.0", "9" * 30, "²", "all%20"])
def test_a_record_that_does_not_exist(library: Service, number: str) -> None:
    """service.md#errors: a missing record is 404 `RecordNotFound`, "Requested record not found"."""
    answer = library.get(f"/publications/{number}")
    assert answer.status_code == 404
    assert answer.json() == {"error": {"code": "RecordNotFound", "message": "Requested record not found"}}


@pytest.mark.parametrize(
    "address",
    [
        "/", "/library", "/library/", "/library/api/v2", "/library/api/v2/", "/library/api/v1/publications",
        "/library/api/v2/nothing", "/library/api/v2/publications/1/2",
        "/other/api/v2/publications", "/_control/nothing", "/%00", "/library/api/v2/publications%2F1%2F2",
    ],
)  # fmt: skip
def test_every_unknown_address_gets_the_error_body(library: Service, address: str) -> None:
    """service.md#errors: the body of an error is `{"error": {"code", "message"}}`, both strings."""
    answer = library.get(f"{ORIGIN}{address}")
    assert answer.status_code == 404
    assert list(answer.json()) == ["error"]
    assert {key: type(value) for key, value in answer.json()["error"].items()} == {"code": str, "message": str}


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "BREW"])
def test_an_unknown_method_is_refused_with_what_is_allowed(library: Service, method: str) -> None:
    """Assumption: 405 has the same error body."""
    with library.client() as client:
        answer = client.request(method, "/publications")
    assert answer.status_code == 405
    assert answer.json()["error"]["code"] == "MethodNotAllowed"
    assert answer.headers["Allow"] == "GET, HEAD, POST"


def test_what_is_allowed_on_a_path_with_an_id_is_named(library: Service) -> None:
    """RFC 9110, 15.5.6: a 405 names the methods of the path."""
    with library.client() as client:
        answer = client.put("/publications/1")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "DELETE, GET, HEAD, PATCH")


@pytest.mark.parametrize("path", ["//publications", "/publications//all"])
def test_an_address_with_a_slash_too_many_is_404_and_no_redirect(library: Service, path: str) -> None:
    """A client that follows a redirect there would not see that its base_url is wrong."""
    answer = library.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "RouteNotFound")


def test_a_failure_of_the_service_is_500_without_its_cause(
    library: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """service.md#errors: an internal error is 500. Its cause goes to stderr only."""
    library.tenant.publications = None  # type: ignore[assignment]
    answer = library.get("/publications/1")
    assert answer.status_code == 500
    assert answer.json() == {"error": {"code": "InternalServerError", "message": "Internal server error"}}
    assert "AttributeError" in capsys.readouterr().err
