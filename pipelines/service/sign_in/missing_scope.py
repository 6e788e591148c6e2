"""The 403 for a missing scope: recognises it, and names the scope (service.md#scopes)."""

from __future__ import annotations

import re

import httpx
import msgspec

from pipelines.errors import InsufficientScopeError
from pipelines.service.redaction import outside_text


def insufficient_scope_error(asked: str, scopes: tuple[str, ...], tenant: str) -> InsufficientScopeError:
    """Returns the error for a request that needs these scopes, with the command that asks for them."""
    lacking = f"the scope {' '.join(scopes)}" if scopes else "a scope that the service does not name"
    return InsufficientScopeError(
        f"{asked} answered 403: the sign-in of '{tenant}' lacks {lacking}. Run `bookferry login {tenant}` and allow it on the consent "
        "page. A client that an administrator issued must have the scope, too.",
        scopes=scopes,
    )


def missing_scopes(challenge: str) -> tuple[str, ...]:
    """Returns the scopes that a `WWW-Authenticate` header names (RFC 6750, 3)."""
    found = re.search(r"""(?i)\bscope\s*=\s*(?:"([^"]*)"|([^\s,"]+))""", challenge)
    named = (found[1] if found[1] is not None else found[2]) if found else ""
    return tuple(outside_text(name, 60) for name in named.split()[:20])


class _ErrorDetail(msgspec.Struct):
    code: str = ""


class _ErrorBody(msgspec.Struct):
    error: _ErrorDetail | str


def lacks_scope(response: httpx.Response, challenge: str) -> bool:
    """Whether a 403 says that the token lacks a scope: by the code `InsufficientScope`, or in `WWW-Authenticate` (service.md#scopes)."""
    if "insufficient_scope" in challenge.lower():
        return True
    try:
        error = _ERROR_BODY_DECODER.decode(response.content).error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    code = error.code if isinstance(error, _ErrorDetail) else error
    return code.lower().replace("_", "") == "insufficientscope"


_ERROR_BODY_DECODER = msgspec.json.Decoder(_ErrorBody)
