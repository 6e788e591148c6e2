"""Which scopes a token carries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.oauth.consent import SCOPE_TEXTS
from sandbox.oauth.scopes import READ_SCOPES, intersection, is_read_only, is_valid_scope, with_asset_scopes
from sandbox.permissions import SCOPES

SETS = st.sets(st.sampled_from([*SCOPES, "library:all", ""]))


@given(SETS, SETS, SETS)
def test_a_token_carries_what_all_three_agree_to(requested: set[str], registered: set[str], released: set[str]) -> None:
    """service.md#scopes: a token has the scopes that were requested, registered and released."""
    scopes = intersection(requested, registered, released)
    assert set(scopes) == requested & registered & released & set(SCOPES)
    assert list(scopes) == [scope for scope in SCOPES if scope in scopes]
    assert intersection(scopes, scopes) == scopes


@given(SETS)
def test_old_tokens_only_gain(scopes: set[str]) -> None:
    """service.md#scopes: older tokens received the asset scopes for `library:read` and `library:write`."""
    now = set(with_asset_scopes(scopes))
    assert scopes & set(SCOPES) <= now
    assert ("assets:read" in now) == bool(scopes & {"library:read", "assets:read"})
    assert ("assets:write" in now) == bool(scopes & {"library:write", "assets:write"})
    assert with_asset_scopes(now) == with_asset_scopes(scopes)


@given(SETS)
def test_reading_is_no_scope_beyond_two(scopes: set[str]) -> None:
    """service.md#oauth: the exception is for clients registered with `library:read` and `assets:read` at most."""
    assert is_read_only(scopes) == (not scopes - set(READ_SCOPES))


@pytest.mark.parametrize("text", ["a", "a b", "library:read assets:read", "!"])
def test_scopes_that_are_written_well(text: str) -> None:
    assert is_valid_scope(text)


@pytest.mark.parametrize("text", ["", " ", "a  b", " a", "a ", 'a"b', "a\\b", "a\nb", "é", "a\tb"])
def test_scopes_that_are_not(text: str) -> None:
    assert not is_valid_scope(text)


def test_the_page_has_words_for_every_scope() -> None:
    assert list(SCOPE_TEXTS) == list(SCOPES)
