"""``/oauth/authorize``: the page on which a person signs in and gives consent, and the redirect back to the client.

GET shows the page; POST to the same address has the decision. The parameters of the authorization stay in the address. A form
needs the token of its page, so that no other site can post it. The page runs no script and loads nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from jinja2 import DictLoader, Environment, StrictUndefined
from werkzeug.wrappers import Request, Response

from sandbox.accounts import with_password
from sandbox.oauth.authorization_request import AuthorizationRequest, check_request, find_client_of
from sandbox.oauth.errors import OAuthError, UntrustedRequest
from sandbox.oauth.grants import issue_code, new_grant
from sandbox.oauth.parameters import Parameters
from sandbox.oauth.redirect_uris import with_parameters
from sandbox.oauth.scopes import intersection
from sandbox.oauth.surfaces import REST_API
from sandbox.state.records import Document
from sandbox.tenants import Tenant

VISIT_COOKIE = "_library_visit"

# Title and meaning of each scope on the page
SCOPE_TEXTS: Mapping[str, tuple[str, str]] = {
    "library:read": ("Read the library", "Publications, copies, locations, collections and authorities"),
    "library:write": ("Change the library", "Create, change and delete publications, copies and collections"),
    "assets:read": ("Read files", "See and download what is attached to publications"),
    "assets:write": ("Change files", "Attach, change and delete files"),
    "users:read": ("Read people", "See who has an account, with address and roles"),
    "users:write": ("Change people", "Create, change and delete accounts"),
    "tasks:read": ("Read tasks", "See what is to be done, and by whom"),
    "tasks:write": ("Change tasks", "Create, edit and complete tasks"),
}


@dataclass(frozen=True, slots=True)
class Visit:
    """A browser at the page: its cookie, and what is to be consented to."""

    request: Request
    tenant: Tenant
    id: str
    authorization: AuthorizationRequest

    @property
    def form_token(self) -> str:
        """The token of the page's form, derived from a cookie that no other site can read."""
        return hashlib.sha256(f"consent {self.id}".encode()).hexdigest()


def ask(request: Request, tenant: Tenant) -> Response:
    """Shows the page, or redirects with an error."""
    return _checked(request, tenant, _page)


def decide(request: Request, tenant: Tenant) -> Response:
    """Handles a posted form."""
    return _checked(request, tenant, _decided)


def _checked(request: Request, tenant: Tenant, proceed: Callable[[Visit], Response]) -> Response:
    parameters = Parameters(request.args)
    try:
        client, redirect_uri = find_client_of(parameters, tenant)
    except UntrustedRequest as problem:
        return _html("refused.html", {"problem": str(problem), "library": tenant.name}, status=400)
    try:
        authorization = check_request(parameters, client, redirect_uri, tenant.base_url(request.host_url))
        visit_cookie = request.cookies.get(VISIT_COOKIE) or secrets.token_urlsafe(24)
        return proceed(Visit(request, tenant, visit_cookie, authorization))
    except OAuthError as refusal:
        return _redirect(redirect_uri, parameters.get("state"), refusal.body())


def _decided(visit: Visit) -> Response:
    form, tenant = visit.request.form, visit.tenant
    if not hmac.compare_digest(form.get("form_token", "").encode(), visit.form_token.encode()):
        return _page(visit, "This page has expired. Please decide again.", 403)
    if form.get("decision") == "refuse":
        raise OAuthError("access_denied", "The person refused")
    person = with_password(tenant, form.get("email", "").strip(), form.get("password", ""))
    if person is None:
        return _page(visit, "The e-mail address or the password is wrong.")
    return _allowed(visit, person)


def _allowed(visit: Visit, person: Document) -> Response:
    """Redirects with a code for the released scopes.

    Assumption: a person who releases nothing is asked again.
    """
    asked = visit.authorization
    released = intersection(asked.scopes, visit.request.form.getlist("scope"))
    if not released:
        return _page(visit, "Tick at least one thing that the program may do, or refuse.")
    grant = new_grant(visit.tenant, asked.client["client_id"], person, released, asked.surface)
    code = issue_code(
        visit.tenant, grant, redirect_uri=asked.redirect_uri, challenge=asked.challenge, resource=asked.resource
    )
    return _redirect(asked.redirect_uri, visit.request.args.get("state"), {"code": code})


def _redirect(redirect_uri: str, state: str | None, answer: Mapping[str, str]) -> Response:
    """Redirects the browser to the client. With 303, the browser does not post the form there."""
    pairs = [*answer.items(), *([("state", state)] if state else [])]
    response = Response(status=303, headers={"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"})
    response.autocorrect_location_header = False
    response.headers["Location"] = with_parameters(redirect_uri, pairs)
    return response


def _page(visit: Visit, problem: str | None = None, status: int = 422) -> Response:
    """Returns the page. One that is shown again for a problem keeps the address and the ticks, but no password."""
    form, asked = visit.request.form, visit.authorization
    ticked = form.getlist("scope") if problem else asked.scopes
    context = {
        "problem": problem,
        "library": visit.tenant.name,
        "program": asked.client["client_name"].strip() or asked.client["client_id"],
        "issued": asked.client["issued"],
        "destination": _destination(asked.redirect_uri),
        "email": form.get("email", ""),
        "form_token": visit.form_token,
        "scopes": [(scope, *SCOPE_TEXTS[scope], scope in ticked) for scope in asked.scopes],
        "on_api": asked.surface == REST_API,
    }
    response = _html("consent.html", context, status=status if problem else 200)
    response.set_cookie(
        VISIT_COOKIE,
        visit.id,
        path=f"{urlsplit(visit.tenant.base_url(visit.request.host_url)).path}/",
        secure=visit.request.is_secure,
        httponly=True,
        samesite="Lax",
    )
    return response


def _destination(redirect_uri: str) -> tuple[str, bool]:
    """Returns the host that gets the answer, and whether it is the person's own computer."""
    parts = urlsplit(redirect_uri)
    return parts.netloc, parts.scheme == "http"


def _html(name: str, context: Mapping[str, Any], *, status: int) -> Response:
    style, pages = _pages()
    hashed = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    headers = {
        "Cache-Control": "no-store",
        "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{hashed}'; base-uri 'none'; frame-ancestors 'none'",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    }
    text = pages.get_template(name).render(context, style=style)
    return Response(text, status=status, headers=headers, content_type="text/html; charset=utf-8")


@cache
def _pages() -> tuple[str, Environment]:
    """Returns the style sheet and the templates, which escape every value."""
    folder = files("sandbox.oauth").joinpath("pages")
    texts = {file.name: file.read_text("utf-8") for file in folder.iterdir()}
    style = texts["style.css"]
    pages = Environment(loader=DictLoader(texts), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return style, pages
