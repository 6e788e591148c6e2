"""Writes with the sign-in of a v3 tenant: a token that expires in between, and a missing scope."""

from __future__ import annotations

import pytest

from pipelines.errors import InsufficientScopeError, SignInError
from tests.sandbox.process import SandboxProcess
from tests.service.sign_in.home import Home


@pytest.mark.long
def test_a_post_with_an_expired_token_goes_again_with_a_new_one(home: Home, sandbox: SandboxProcess) -> None:
    """A 401 had no effect: one record, created by the second request (I3, I8)."""
    home.sign_in()
    sandbox.fault("jump", seconds=4000, path="/publications", method="POST")
    with home.client() as client:
        publication = client.write("POST", "publications", {"title": "Once only, whatever the token"})
        ends = client.list_ends("publications")
        client.write("DELETE", f"publications/{publication['id']}")
    assert [record["id"] for record in ends.records if record["title"] == publication["title"]] == [publication["id"]]
    assert home.grant.refreshes == 1


@pytest.mark.long
def test_a_delete_that_was_done_before_its_token_expired_has_succeeded(home: Home, sandbox: SandboxProcess) -> None:
    """I8: the mark of the unclear first try survives the 401 in between."""
    home.sign_in()
    with home.client() as client:
        publication = client.write("POST", "publications", {"title": "To be removed"})
        sandbox.fault("status", status=500, when="after", method="DELETE")
        sandbox.fault("status", status=401, method="DELETE")
        assert client.write("DELETE", f"publications/{publication['id']}") is None


def test_a_post_that_is_refused_with_a_new_token_too_needs_a_person(home: Home, sandbox: SandboxProcess) -> None:
    """Exit status 4; sent with three new tokens, and no more."""
    home.sign_in()
    sandbox.reset("counts")
    sandbox.fault("status", status=401, method="POST", path="/publications", times=20)
    with home.client() as client, pytest.raises(SignInError, match="Run `bookferry login new`"):
        client.write("POST", "publications", {"title": "x"})
    assert [request["path"].endswith("/publications") for request in sandbox.requests()].count(True) == 4


@pytest.mark.long
def test_a_write_without_its_scope_names_it(home: Home) -> None:
    """service.md#scopes: a 403 with code `InsufficientScope`."""
    home.sign_in(["library:read", "assets:read"])
    with (
        home.client() as client,
        pytest.raises(InsufficientScopeError, match="lacks the scope library:write") as caught,
    ):
        client.write("POST", "publications", {"title": "x"})
    assert caught.value.scopes == ("library:write",)
