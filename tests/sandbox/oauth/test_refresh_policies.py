"""The four refresh policies, cell by cell, and two refreshes at the same moment.

| | strict | leeway | until_used | at_once |
|---|---|---|---|---|
| old access token after a refresh | works | works | 401 after the first use of the new one | 401 at once |
| old refresh token used again | the grant ends | works | works until the new access token is used | invalid_grant, new pair lives |
| two refreshes at once | the winner's tokens end, too | both live | both live | one lives |
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from sandbox.oauth.refresh_policies import REFRESH_POLICIES
from tests.spec.conftest import Library
from tests.spec.oauth_client import OAuthClient, registered_client

NAMES = list(REFRESH_POLICIES)


def signed_in(library: Library, policy: str) -> tuple[OAuthClient, dict[str, Any]]:
    library.change(oauth={"refresh_policy": policy})
    app = registered_client(library, "none")
    return app, app.sign_in()


def works(app: OAuthClient, tokens: dict[str, Any]) -> bool:
    """Returns whether the access token works in version 3."""
    return app.call(tokens["access_token"]).status_code == 200


def renews(app: OAuthClient, tokens: dict[str, Any]) -> bool:
    """Returns whether the refresh token works; a refusal is always `invalid_grant`."""
    answer = app.refresh(tokens["refresh_token"])
    if answer.status_code == 200:
        return True
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    return False


@pytest.mark.parametrize(("policy", "expected"), [
    ("strict", (True, True)), ("leeway", (True, True)), ("until_used", (True, False)), ("at_once", (False, False)),
])  # fmt: skip
def test_the_old_access_token_after_a_refresh(library: Library, policy: str, expected: tuple[bool, bool]) -> None:
    """Row 1: before and after the first use of the new access token."""
    app, old = signed_in(library, policy)
    new = app.refresh(old["refresh_token"]).json()
    before = works(app, old)
    assert works(app, new)
    assert (before, works(app, old)) == expected
    assert works(app, new)


@pytest.mark.parametrize(("policy", "renewed", "new_lives"), [
    ("strict", False, False), ("leeway", True, True), ("until_used", True, True), ("at_once", False, True),
])  # fmt: skip
def test_the_old_refresh_token_used_again(library: Library, policy: str, renewed: bool, new_lives: bool) -> None:
    """Row 2, before the first use of the new access token."""
    app, old = signed_in(library, policy)
    new = app.refresh(old["refresh_token"]).json()
    assert renews(app, old) == renewed
    assert works(app, new) == new_lives
    assert renews(app, new) == new_lives
    if policy == "strict":
        assert not works(app, old)  # the grant has ended


def test_the_old_refresh_token_lives_until_the_new_access_token_is_used(library: Library) -> None:
    """Row 2, third column: a lost response can be requested again until its token was used."""
    app, old = signed_in(library, "until_used")
    lost = app.refresh(old["refresh_token"]).json()
    new = app.refresh(old["refresh_token"]).json()
    assert works(app, new)
    assert not renews(app, old)
    assert not works(app, old)
    assert works(app, lost)
    assert renews(app, new)


def test_using_a_token_ends_every_pair_before_it(library: Library) -> None:
    """Third column over several refreshes whose tokens were not used."""
    app, first = signed_in(library, "until_used")
    second = app.refresh(first["refresh_token"]).json()
    third = app.refresh(second["refresh_token"]).json()
    assert all([works(app, first), renews(app, first)])
    assert works(app, third)
    assert not any([works(app, first), works(app, second), renews(app, first), renews(app, second)])
    assert renews(app, third)


def test_a_refused_request_does_not_use_the_token(library: Library) -> None:
    """Third column: only a successful request counts as use."""
    library.change(oauth={"refresh_policy": "until_used"})
    app = registered_client(library, "none", scope=None)
    old = app.sign_in(resource=None)
    new = app.refresh(old["refresh_token"]).json()
    assert not works(app, new)
    assert renews(app, old)


def test_the_leeway_ends(library: Library) -> None:
    """Second column: after the leeway the old refresh token ends the grant."""
    library.change(oauth={"refresh_leeway_seconds": 20})
    app, old = signed_in(library, "leeway")
    new = app.refresh(old["refresh_token"]).json()
    library.clock.time += 20
    assert renews(app, old)
    library.clock.time += 0.1
    assert works(app, new)
    assert not renews(app, old)
    assert not works(app, new)
    assert not renews(app, new)


@pytest.mark.parametrize("policy", NAMES)
def test_many_refreshes_at_once(library: Library, policy: str) -> None:
    """Every response is one of the table, and no token is given twice."""
    app, old = signed_in(library, policy)
    answers = at_once(app, old["refresh_token"], 12)
    given = [answer.json()["refresh_token"] for answer in answers if answer.status_code == 200]
    assert len(set(given)) == len(given) == (1 if policy in {"strict", "at_once"} else 12)
    refused = {answer.json()["error"] for answer in answers if answer.status_code != 200}
    assert refused <= {"invalid_grant"}


@pytest.mark.parametrize(("policy", "mended"), [
    ("strict", False), ("leeway", True), ("until_used", True), ("at_once", False),
])  # fmt: skip
def test_a_lost_response(library: Library, policy: str, mended: bool) -> None:
    """I3: the service rotated the token, the response was lost, and the client asks again."""
    app, old = signed_in(library, policy)
    library.fault("status", path="/oauth/token", status=503, when="after")
    assert app.refresh(old["refresh_token"]).status_code == 503
    assert renews(app, old) == mended
    assert works(app, old) == (policy in {"leeway", "until_used"})


def at_once(app: OAuthClient, refresh_token: str, count: int) -> list[httpx.Response]:
    """Sends `count` refreshes with the same token from threads that start together."""
    gate = threading.Barrier(count)

    def refresh(_: int) -> httpx.Response:
        gate.wait()
        return app.refresh(refresh_token)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(refresh, range(count)))
