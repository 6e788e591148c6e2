"""Scopes: their syntax, and which of them a token has (service.md#scopes)."""

from __future__ import annotations

import re
from collections.abc import Collection

from sandbox.permissions import SCOPES

# The scopes of a registration without `scope` (service.md#clients)
READ_SCOPES = ("library:read", "assets:read")

# The asset scope that a token older than the asset scopes received for its library scope
_ASSET_SCOPE_OF = {"library:read": "assets:read", "library:write": "assets:write"}

_WRITTEN = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*")


def is_valid_scope(text: str) -> bool:
    """Returns whether a text has names separated by single spaces (RFC 6749, section 3.3)."""
    return _WRITTEN.fullmatch(text) is not None


def intersection(*sides: Collection[str]) -> tuple[str, ...]:
    """Returns the scopes that all sides contain, in the order of ``SCOPES``."""
    return tuple(scope for scope in SCOPES if all(scope in side for side in sides))


def is_read_only(scopes: Collection[str]) -> bool:
    """Returns whether there is no scope beyond `library:read` and `assets:read`."""
    return set(scopes) <= set(READ_SCOPES)


def with_asset_scopes(scopes: Collection[str]) -> tuple[str, ...]:
    """Returns the scopes today of a token issued before the asset scopes existed."""
    received = {_ASSET_SCOPE_OF[scope] for scope in scopes if scope in _ASSET_SCOPE_OF}
    return intersection({*scopes, *received})
