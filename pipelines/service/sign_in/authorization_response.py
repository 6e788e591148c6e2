"""The authorization response that a browser brings to the redirect address (RFC 6749, 4.1.2), and what ties it to our request."""

from __future__ import annotations

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx

from pipelines.errors import SignInError
from pipelines.service.redaction import outside_text
from pipelines.service.sign_in.oauth_errors import (
    ForeignResponseError,
    authorization_refused,
)


@dataclass(frozen=True)
class Challenge:
    """What ties a code to whoever asked for it: `state` (RFC 6749, 10.12) and PKCE with S256 (RFC 7636)."""

    state: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(64), repr=False)

    @property
    def s256(self) -> str:
        """The code_challenge."""
        return urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()


def authorization_code(answer: Mapping[str, str], challenge: Challenge, base_url: str) -> str:
    """The code in what a browser brought to the redirect address.

    Refuses an answer to somebody else's question (`state`), from another server (`iss`, RFC 9207), and explains an error.
    """
    if "state" not in answer and answer.get("error"):  # some servers forget it; an error can do no harm
        raise authorization_refused(answer["error"], answer.get("error_description", ""))
    if not secrets.compare_digest(answer.get("state", "").encode(), challenge.state.encode()):
        raise ForeignResponseError(
            "The answer in the browser does not belong to this sign-in (its `state` is another one), so it was not used. Use the newest "
            "browser window."
        )
    issuer = answer.get("iss")
    if issuer is not None and _origin(issuer) != _origin(base_url):
        raise ForeignResponseError(
            f"The answer in the browser comes from {outside_text(issuer)}, not from {base_url}, so it was not used. If the library moved "
            "there, correct base_url; if not, tell its operators."
        )
    if answer.get("error"):
        raise authorization_refused(answer["error"], answer.get("error_description", ""))
    if not answer.get("code"):
        raise SignInError("The answer in the browser holds neither a code nor an error. Run the same command again.")
    return answer["code"]


def _origin(address: str) -> tuple[str, str, int | None]:
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        return "", address, None
    return url.scheme, url.host, url.port
