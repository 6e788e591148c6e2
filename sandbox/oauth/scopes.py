"""Scopes: how they are written, and which of them a token carries."""

from __future__ import annotations

import re
from collections.abc import Collection

from sandbox.callers import SCOPES

# The document: "a registration without `scope` is stored as exactly these two"
READ_SCOPES = ("library:read", "assets:read")

# Tokens from before the scopes for assets existed: what they carried, and what they received for it
_ASSET_SCOPE_OF = {"library:read": "assets:read", "library:write": "assets:write"}

_WRITTEN = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*")


def is_valid_scope(text: str) -> bool:
    """Names separated by one space each (RFC 6749, section 3.3)."""
    return _WRITTEN.fullmatch(text) is not None


def intersection(*sides: Collection[str]) -> tuple[str, ...]:
    """What every side agrees to, in the order of the document.

    The document: "the intersection of the requested scopes, the scopes the client registered for, and the scopes the
    signing-in person released".
    """
    return tuple(scope for scope in SCOPES if all(scope in side for side in sides))


def is_read_only(scopes: Collection[str]) -> bool:
    """Whether there is "no scope beyond `library:read` and `assets:read`"."""
    return set(scopes) <= set(READ_SCOPES)


def with_asset_scopes(scopes: Collection[str]) -> tuple[str, ...]:
    """What a token issued before the scopes for assets existed carries today."""
    received = {_ASSET_SCOPE_OF[scope] for scope in scopes if scope in _ASSET_SCOPE_OF}
    return intersection({*scopes, *received})
