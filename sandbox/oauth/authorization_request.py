"""What an authorization request may ask for: an ordered list of small checks, before anybody is asked to consent.

A client or redirect address that is not known is ``UntrustedRequest``: the person sees a page and is sent nowhere. Every later refusal
is an ``OAuthError`` that the client gets at its redirect address.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sandbox.oauth import redirect_uris, surfaces
from sandbox.oauth.errors import OAuthError, UntrustedRequest, invalid_request, invalid_scope
from sandbox.oauth.parameters import Parameters
from sandbox.oauth.scopes import intersection, is_valid_scope
from sandbox.settings import OAuth
from sandbox.state.clients import Client
from sandbox.tenants import Tenant

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")  # what base64url makes of 256 bits


@dataclass(frozen=True, slots=True)
class RedirectTarget:
    """Who gets the answer, and where."""

    client: Client
    redirect_uri: str


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """What a person is asked to consent to. ``scopes``: what the client asks for and is registered for."""

    redirect_target: RedirectTarget
    scopes: tuple[str, ...]
    surface: str
    resource: str | None
    challenge: str | None


def find_redirect_target(given: Parameters, tenant: Tenant) -> RedirectTarget:
    """The client and its address, or ``UntrustedRequest``."""
    if {"client_id", "redirect_uri"} & set(given.repeated):
        raise UntrustedRequest("The request names its program or its return address twice.")
    client = tenant.clients.find(given.get("client_id") or "")
    if client is None:
        raise UntrustedRequest("The program that sent you here is not registered with this library.")
    address = given.get("redirect_uri")
    if address is None:
        raise UntrustedRequest("The request does not say where to return to.")
    any_port = tenant.settings.oauth.loopback_port == "any"
    if not redirect_uris.is_registered(address, client.redirect_uris, any_loopback_port=any_port):
        raise UntrustedRequest("The return address of the request is none that its program has registered.")
    return RedirectTarget(client, address)


def check_request(given: Parameters, to: RedirectTarget, rules: OAuth, base_url: str) -> AuthorizationRequest:
    """What the request asks for, or the refusal that goes to the redirect address."""
    for check in _CHECKS:
        check(given, to.client, rules)
    return AuthorizationRequest(
        redirect_target=to,
        scopes=_scopes(given, to.client),
        surface=surfaces.target_surface(to.client, given.get("resource"), base_url),
        resource=given.get("resource"),
        challenge=given.get("code_challenge"),
    )


def needs_pkce(client: Client, rules: OAuth) -> bool:
    """Whether a challenge has to come along.

    The document: "required of every self-registered client, public or confidential"; support can lift it for confidential
    ones; "selectable at creation" of an issued one; "for public clients PKCE is always required".
    """
    if client.is_public:
        return True
    return client.pkce if client.issued else rules.pkce_of_confidential == "required"


def _nothing_twice(given: Parameters, client: Client, rules: OAuth) -> None:  # noqa: ARG001  # one signature for all
    if "resource" in given.repeated:
        raise OAuthError("invalid_target", "A token has exactly one resource")
    if given.repeated:
        raise invalid_request(f"{given.repeated[0]} is there more than once")


def _response_type(given: Parameters, client: Client, rules: OAuth) -> None:  # noqa: ARG001
    response_type = given.get("response_type")
    if response_type is None:
        raise invalid_request("response_type is missing")
    if response_type not in client.response_types:
        raise OAuthError("unsupported_response_type", "response_type must be code")


def _challenge(given: Parameters, client: Client, rules: OAuth) -> None:
    challenge, method = given.get("code_challenge"), given.get("code_challenge_method")
    if challenge is None:
        if needs_pkce(client, rules) or method is not None:
            raise invalid_request("code_challenge is missing")
        return
    if method != "S256":
        raise invalid_request("code_challenge_method must be S256")
    if not _CHALLENGE.fullmatch(challenge):
        raise invalid_request("code_challenge must be 43 characters of base64url")


def _scope(given: Parameters, client: Client, rules: OAuth) -> None:  # noqa: ARG001
    scope = given.get("scope")
    if scope is not None and not is_valid_scope(scope):
        raise invalid_scope("scope must be names separated by one space each")
    if not _scopes(given, client):
        raise invalid_scope("The client is registered for none of these scopes")


def _scopes(given: Parameters, client: Client) -> tuple[str, ...]:
    """Assumption: a request without ``scope`` asks for everything that the client is registered for."""
    scope = given.get("scope")
    return intersection(client.scopes if scope is None else scope.split(" "), client.scopes)


_CHECKS: tuple[Callable[[Parameters, Client, OAuth], None], ...] = (_nothing_twice, _response_type, _challenge, _scope)
