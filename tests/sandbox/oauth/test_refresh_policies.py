"""The four refresh policies, cell by cell.

| | strict | leeway | until_used | at_once |
|---|---|---|---|---|
| old access token after a refresh | works | works | 401 after the first use of the new one | 401 at once |
| old refresh token used again | the grant ends | works | works until the new access token is used | invalid_grant, new pair lives |
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.spec.conftest import Library
from tests.spec.oauth_client import OAuthClient, registered_client


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
    ("strict", (True, True, False, False)), ("leeway", (True, True, True, True)),
    ("until_used", (True, False, True, True)), ("at_once", (False, False, False, True)),
])  # fmt: skip
def test_the_old_tokens_after_a_refresh(library: Library, policy: str, expected: tuple[bool, ...]) -> None:
    """The old access token before and after the first use of the new one; the old refresh token before it, and the new pair afterwards."""
    app, old = signed_in(library, policy)
    new = app.refresh(old["refresh_token"]).json()
    before = works(app, old)
    assert works(app, new)
    after = works(app, old)
    app, old = signed_in(library, policy)
    new = app.refresh(old["refresh_token"]).json()
    renewed, new_lives = renews(app, old), works(app, new)
    assert (before, after, renewed, new_lives) == expected
    assert renews(app, new) == new_lives
    if policy == "strict":
        assert not works(app, old)  # the grant has ended
