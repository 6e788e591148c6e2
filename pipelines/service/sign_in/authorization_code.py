"""The authorization response of a browser (RFC 6749, 4.1.2): the code in it, and the checks that it belongs to our request."""

from __future__ import annotations

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx

from pipelines.errors import SignInError
from pipelines.service.http.transport import origin_of
from pipelines.service.http.urls import url_of
from pipelines.service.redaction import outside_text
from pipelines.service.sign_in.oauth_errors import (
    ForeignResponseError,
    authorization_refused,
)


@dataclass(frozen=True)
class Challenge:
    """Ties a code to its request: `state` (RFC 6749, 10.12) and PKCE with S256 (RFC 7636)."""

    state: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(64), repr=False)

    @property
    def s256(self) -> str:
        """The code_challenge."""
        return urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()


def authorization_code(parameters: Mapping[str, str], challenge: Challenge, base_url: str) -> str:
    """Returns the code in the parameters of a response at the redirect address.

    Raises `ForeignResponseError` for a response to another request (`state`) or from another server (`iss`, RFC 9207), also if it names
    an error: any page in a browser on this machine can send one. Raises the error that our response names.
    """
    if not secrets.compare_digest(parameters.get("state", "").encode(), challenge.state.encode()):
        how = "its `state` differs" if "state" in parameters else "it has no `state`"
        raise ForeignResponseError(
            f"The response in the browser does not belong to this sign-in ({how}), so it was not used. Use the newest browser window."
        )
    issuer = parameters.get("iss")
    if issuer is not None and _origin(issuer) != _origin(base_url):
        raise ForeignResponseError(
            f"The response in the browser comes from {outside_text(issuer)}, not from {base_url}, so it was not used. If the library moved "
            "there, correct base_url; if not, write to its operators."
        )
    if parameters.get("error"):
        raise authorization_refused(parameters["error"], parameters.get("error_description", ""))
    if not parameters.get("code"):
        raise SignInError("The response in the browser has neither a code nor an error. Run the same command again.")
    return parameters["code"]


def _origin(address: str) -> object:
    try:
        return origin_of(url_of(address))
    except httpx.InvalidURL:
        return None
