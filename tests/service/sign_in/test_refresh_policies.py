"""I3: four policies of servers for old tokens, and every fault of a refresh. The client must survive all of them."""

from __future__ import annotations

import re
import signal

import pytest

from pipelines.errors import SignInError
from pipelines.service.sign_in.token_refresh import TokenRefresher
from tests.forks import kill_at
from tests.sandbox.process import SandboxProcess
from tests.service.sign_in.home import SECONDS, Home

POLICIES = ["strict", "leeway", "until_used", "at_once"]
HEALS = {"leeway", "until_used"}
"""Policies that accept an old refresh token again after a lost response."""

LOST = r"the answer to a refresh on .* was lost.*Run `bookferry login new`"


@pytest.fixture
def signed_in(home: Home, sandbox: SandboxProcess, policy: str) -> Home:
    """Signed in, at a service with this policy whose clock then jumps by more than an hour: the access token has expired."""
    sandbox.change(oauth={"refresh_policy": policy})
    home.sign_in()
    sandbox.reset("counts")
    sandbox.fault("jump", seconds=4000, path="/publications")
    return home


def killed(home: Home) -> None:
    """Reads a page, and dies by kill -9 after the server's response and before it is stored."""
    kill_at(TokenRefresher, "_keep", "before", lambda *_: True)
    home.read()


@pytest.mark.long
@pytest.mark.parametrize("policy", ["strict", "leeway"])  # the others lose a response below
def test_killed_between_the_answer_and_the_store(signed_in: Home, policy: str) -> None:
    """I3: recovers if the server allows it; else a plain message with the command to run, and exit 4."""
    process = signed_in.start(killed)
    process.join(SECONDS)
    assert process.exitcode == -signal.SIGKILL
    assert signed_in.stored.refreshing_since is not None
    if policy in HEALS:
        assert signed_in.read().status_code == 200
        assert signed_in.stored.refreshing_since is None
    else:
        assert_over(signed_in)


@pytest.mark.parametrize(
    ("policy", "fault"),
    [
        *((policy, {"fault": "garble"}) for policy in POLICIES),
        pytest.param("strict", {"fault": "reset"}, marks=pytest.mark.long),
        pytest.param("leeway", {"fault": "cut"}, marks=pytest.mark.long),
        pytest.param("until_used", {"fault": "status", "status": 502}, marks=pytest.mark.long),
        pytest.param("at_once", {"fault": "reset"}, marks=pytest.mark.long),
    ],
)
def test_the_answer_is_lost(signed_in: Home, sandbox: SandboxProcess, policy: str, fault: dict[str, object]) -> None:
    """I3: the response is lost after the server rotated the token; the old token is tried once more, and no third time."""
    details = {"when": "after"} if fault["fault"] in ("reset", "status") else {}
    sandbox.fault(path="/oauth/token", **fault, **details)
    if policy in HEALS:
        assert signed_in.read().status_code == 200
        assert signed_in.stored.refreshing_since is None
        assert signed_in.refreshes() == 2
    else:
        assert_over(signed_in)
        assert signed_in.refreshes() == 3  # the last one redeemed the code of the new sign-in


@pytest.mark.long
@pytest.mark.parametrize(
    ("policy", "fault"),
    [
        *((policy, {"fault": "reset"}) for policy in POLICIES),
        ("strict", {"fault": "status", "status": 503}),
        ("at_once", {"fault": "status", "status": 429, "retry_after": 1}),
    ],
)
def test_a_refresh_that_had_no_effect_costs_nothing(
    signed_in: Home, sandbox: SandboxProcess, policy: str, fault: dict[str, object]
) -> None:
    """If the server never processed the request, the old token is still valid, under every policy."""
    sandbox.fault(path="/oauth/token", when="before", **fault)
    assert signed_in.read().status_code == 200
    assert signed_in.refreshes() == 2
    assert signed_in.stored.refreshing_since is None


@pytest.mark.long
@pytest.mark.parametrize("policy", ["strict"])
def test_a_sign_in_that_was_revoked_says_so(signed_in: Home, sandbox: SandboxProcess, policy: str) -> None:
    """Exit 4, and the next process reports it without another request."""
    sandbox.control("POST", "oauth/grants/end", {"tenant": "library"})
    with pytest.raises(
        SignInError, match=r"takes its refresh token no more.*invalid_grant.*Run `bookferry login new`"
    ) as caught:
        signed_in.read()
    assert caught.value.exit_status == 4
    request_count = len(sandbox.requests())
    with pytest.raises(SignInError, match=re.escape(str(caught.value))):
        signed_in.read()
    assert len(sandbox.requests()) == request_count
    signed_in.sign_in()
    assert signed_in.read().status_code == 200


def assert_over(home: Home) -> None:
    """A person must sign in, gets the same message each time, and can sign in."""
    for _ in range(2):
        with pytest.raises(SignInError, match=LOST) as caught:
            home.read()
        assert caught.value.exit_status == 4
    home.sign_in()
    assert home.read().status_code == 200
