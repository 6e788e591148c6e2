"""Checks an authorization request, in a fixed order, before the person is asked to consent.

An unknown client or redirect address is an ``UntrustedRequest``: the person sees a page and is not redirected. Every later
problem is an ``OAuthError``, which the client gets at its redirect address.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sandbox.oauth import surfaces
from sandbox.oauth.errors import OAuthError, UntrustedRequest, invalid_request, invalid_scope
from sandbox.oauth.parameters import Parameters
from sandbox.oauth.registration import find_client
from sandbox.oauth.scopes import intersection, is_valid_scope
from sandbox.state.records import Document
from sandbox.tenants import Tenant

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")  # 256 bits in base64url


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """What the person is asked to consent to. ``scopes``: the requested ones that the client registered."""

    client: Document
    redirect_uri: str
    scopes: tuple[str, ...]
    surface: str
    resource: str | None
    challenge: str


def find_client_of(parameters: Parameters, tenant: Tenant) -> tuple[Document, str]:
    """Returns client and redirect address, or raises ``UntrustedRequest``."""
    if {"client_id", "redirect_uri"} & set(parameters.repeated):
        raise UntrustedRequest("The request names its program or its return address more than once.")
    client = find_client(tenant, parameters.get("client_id"))
    if client is None:
        raise UntrustedRequest("The program that sent you here is not registered with this library.")
    address = parameters.get("redirect_uri")
    if address is None:
        raise UntrustedRequest("The request has no return address.")
    if address not in client["redirect_uris"]:
        raise UntrustedRequest("The program did not register the return address of the request.")
    return client, address


def check_request(parameters: Parameters, client: Document, redirect_uri: str, base_url: str) -> AuthorizationRequest:
    """Returns the checked request, or raises the error for the redirect address.

    Assumption: a request without ``scope`` asks for every registered scope.
    """
    if "resource" in parameters.repeated:
        raise OAuthError("invalid_target", "A token has exactly one resource")
    if parameters.repeated:
        raise invalid_request(f"{parameters.repeated[0]} occurs more than once")
    response_type = parameters.get("response_type")
    if response_type is None:
        raise invalid_request("response_type is missing")
    if response_type not in client["response_types"]:
        raise OAuthError("unsupported_response_type", "response_type must be code")
    challenge = _challenge(parameters)
    scope, registered = parameters.get("scope"), client["scope"].split()
    if scope is not None and not is_valid_scope(scope):
        raise invalid_scope("scope must be names separated by one space each")
    scopes = intersection(registered if scope is None else scope.split(" "), registered)
    if not scopes:
        raise invalid_scope("The client is registered for none of these scopes")
    resource = parameters.get("resource")
    surface = surfaces.target_surface(client, resource, base_url)
    return AuthorizationRequest(client, redirect_uri, scopes, surface, resource, challenge)


def _challenge(parameters: Parameters) -> str:
    """Every client needs PKCE; a service can issue one without it (service.md#clients), the sandbox does not."""
    challenge = parameters.get("code_challenge")
    if challenge is None:
        raise invalid_request("code_challenge is missing")
    if parameters.get("code_challenge_method") != "S256":
        raise invalid_request("code_challenge_method must be S256")
    if not _CHALLENGE.fullmatch(challenge):
        raise invalid_request("code_challenge must be 43 characters of base64url")
    return challenge
