"""Redirects of the API: a slash at the end of a path is followed once, no other redirect is (I2), and the error says where it leads."""

from __future__ import annotations

import re

import httpx

from pipelines.errors import BookferryError, ProtocolError, SignInPageError
from pipelines.service.http.failures import describe_request
from pipelines.service.http.transport import path_of
from pipelines.service.http.urls import url_of
from pipelines.service.redaction import outside_text

CHECK_SIGN_IN = "Check user name and password (or the session cookie) where bookferry.toml takes them from"

_OF_AN_API = re.compile(r"/api(/v\d+(/|$)|/?$)")
_OF_A_SIGN_IN = re.compile(
    r"log[-_]?[io]n(?![a-z])|(?<![a-z])(sign[-_]?[io]n|o?auth[0-9]*|authenticat\w*|authori[sz]e|cas|idp|saml[0-9]*|sessions?|sso)(?![a-z])",
    re.IGNORECASE,
)


def at_other_slash(response: httpx.Response) -> httpx.URL | None:
    """Returns the address of a GET with or without a slash at its end, if the response redirects there and nowhere else.

    Scheme, host, port and parameters stay those of the request (I2): behind a proxy, a service may name another scheme or port, and leave
    out the parameters.
    """
    url, target = response.request.url, _target(response)
    if response.request.method != "GET" or target is None:
        return None
    path, target_path = path_of(url), path_of(target)
    with_or_without = (f"{path}/", path.removesuffix("/"))
    only_slash = target.host == url.host and target_path in with_or_without and target_path != path
    if not only_slash or (target.query and sorted(target.params.multi_items()) != sorted(url.params.multi_items())):
        return None
    return at_path(url, target_path)


def at_path(url: httpx.URL, path: str) -> httpx.URL:
    """Returns the address with this path, as it is sent; its parameters stay."""
    return url.copy_with(raw_path=path.encode("ascii") + b"".join(url.raw_path.partition(b"?")[1:]))


def _target(response: httpx.Response) -> httpx.URL | None:
    """Where a response redirects to; `None` if nowhere, or to an address that cannot be understood."""
    if not response.has_redirect_location:
        return None
    try:
        return url_of(response.request.url.join(response.headers["location"]))
    except (httpx.InvalidURL, ValueError):
        return None


def redirect_error(response: httpx.Response) -> BookferryError:
    """Returns the error for a redirect that is not followed: the API has moved, a person has to sign in, or the service is away."""
    request, target = response.request, _target(response)
    line, to = f"{describe_request(request)} redirects to", outside_text(response.headers["location"])
    if target is None or _OF_AN_API.search(target.path):
        if at_other_slash(response) is not None:
            return ProtocolError(f"{line} {to}, and that address back to it. Write to the library's operators.")
        unsent = "" if request.method == "GET" else " Bookferry does not send a write on."
        return ProtocolError(f"{line} {to}. If the library moved there, correct base_url.{unsent}")
    page = outside_text(target.copy_with(query=None, fragment=None))
    if not _OF_A_SIGN_IN.search(f"{target.host}{target.path}"):
        return ProtocolError(
            f"{line} {page}, which is no API: perhaps the service is away. Look there, and run the same command again when the service "
            "answers. If the library moved there, correct base_url."
        )
    check = "Sign in again with `bookferry login`" if "/api/v3/" in request.url.path else CHECK_SIGN_IN
    return SignInPageError(
        f"{line} {page}, a page for people to sign in: the service does not accept the sign-in for that. {check}; if the library moved, "
        "correct base_url."
    )
