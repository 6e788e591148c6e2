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

from sandbox.oauth.authorization_request import (
    AuthorizationRequest,
    RedirectTarget,
    check_request,
    find_redirect_target,
)
from sandbox.oauth.errors import OAuthError, UntrustedRequest
from sandbox.oauth.parameters import Parameters
from sandbox.oauth.redirect_uris import with_parameters
from sandbox.oauth.scopes import intersection
from sandbox.oauth.surfaces import REST_API
from sandbox.state.accounts import User
from sandbox.state.grants import CodeDetails, NewGrant
from sandbox.tenants import Tenant

SESSION_COOKIE = "_library_session"
VISIT_COOKIE = "_library_visit"

# Assumptions: how long a browser stays signed in, and how long a code is valid
_SESSION_SECONDS = 12 * 3600
_CODE_SECONDS = 60

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
    """A browser at the page: the signed-in person and the cookies."""

    request: Request
    tenant: Tenant
    id: str
    person: User | None
    session: str | None

    @property
    def form_token(self) -> str:
        """The token of the page's form, derived from a cookie that no other site can read."""
        return hashlib.sha256(f"consent {self.id}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the page is shown again."""

    text: str
    status: int = 422


def ask(request: Request, tenant: Tenant) -> Response:
    """Shows the page, or redirects with an error."""
    return _checked(request, tenant, lambda authorization: _page(_visit(request, tenant), authorization))


def decide(request: Request, tenant: Tenant) -> Response:
    """Handles a posted form."""
    return _checked(request, tenant, lambda authorization: _decided(_visit(request, tenant), authorization))


def _checked(request: Request, tenant: Tenant, proceed: Callable[[AuthorizationRequest], Response]) -> Response:
    parameters = Parameters(request.args)
    try:
        to = find_redirect_target(parameters, tenant)
    except UntrustedRequest as problem:
        return _html("refused.html", {"problem": str(problem), "library": tenant.name}, status=400)
    try:
        return proceed(check_request(parameters, to, tenant.base_url(request.host_url)))
    except OAuthError as refusal:
        return _redirect(to, parameters.get("state"), refusal.body())


def _visit(request: Request, tenant: Tenant) -> Visit:
    session = request.cookies.get(SESSION_COOKIE)
    person = tenant.accounts.with_session(session, tenant.clock.now()) if session else None
    visit_cookie = request.cookies.get(VISIT_COOKIE)
    return Visit(request, tenant, visit_cookie or secrets.token_urlsafe(24), person, session if person else None)


def _decided(visit: Visit, authorization: AuthorizationRequest) -> Response:
    form = visit.request.form
    if not _same(form.get("form_token", ""), visit.form_token):
        return _page(visit, authorization, Problem("This page has expired. Please decide again.", 403))
    decision = form.get("decision")
    if decision == "refuse":
        raise OAuthError("access_denied", "The person refused")
    if decision == "sign_out":
        return _signed_out(visit, authorization)
    if visit.person is not None:
        return _allowed(visit, visit.person, authorization)
    person = visit.tenant.with_password(form.get("email", "").strip(), form.get("password", ""))
    if person is None:
        return _page(visit, authorization, Problem("The e-mail address or the password is wrong."))
    return _signed_in(visit, person, authorization)


def _same(token: str, expected: str) -> bool:
    return hmac.compare_digest(token.encode(), expected.encode())


def _signed_in(visit: Visit, person: User, authorization: AuthorizationRequest) -> Response:
    tenant = visit.tenant
    session = tenant.accounts.open_session(person, tenant.clock.now() + _SESSION_SECONDS)
    response = _allowed(Visit(visit.request, tenant, visit.id, person, session), person, authorization)
    _set_cookie(response, visit, SESSION_COOKIE, session, _SESSION_SECONDS)
    return response


def _signed_out(visit: Visit, authorization: AuthorizationRequest) -> Response:
    if visit.session is not None:
        visit.tenant.accounts.close_session(visit.session)
    response = _page(Visit(visit.request, visit.tenant, visit.id, None, None), authorization)
    response.delete_cookie(SESSION_COOKIE, path=_cookie_path(visit))
    return response


def _allowed(visit: Visit, person: User, authorization: AuthorizationRequest) -> Response:
    """Redirects with a code for the released scopes.

    Assumption: a person who releases nothing is asked again.
    """
    released = intersection(authorization.scopes, visit.request.form.getlist("scope"))
    if not released:
        return _page(visit, authorization, Problem("Tick at least one thing that the program may do, or refuse."))
    tenant, to, now = visit.tenant, authorization.redirect_target, visit.tenant.clock.now()
    code = secrets.token_urlsafe(32)
    details = CodeDetails(to.redirect_uri, authorization.challenge, authorization.resource, now + _CODE_SECONDS)
    tenant.grants.open(NewGrant(to.client.id, person, released, authorization.surface), code, details, now)
    return _redirect(to, visit.request.args.get("state"), {"code": code})


def _redirect(to: RedirectTarget, state: str | None, answer: Mapping[str, str]) -> Response:
    """Redirects the browser to the client. With 303, the browser does not post the form there."""
    pairs = [*answer.items(), *([("state", state)] if state else [])]
    response = Response(status=303, headers={"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"})
    response.autocorrect_location_header = False
    response.headers["Location"] = with_parameters(to.redirect_uri, pairs)
    return response


def _page(visit: Visit, authorization: AuthorizationRequest, problem: Problem | None = None) -> Response:
    """Returns the page. A page that is context again keeps the address and the ticks, but no password."""
    form, client = visit.request.form, authorization.redirect_target.client
    ticked = form.getlist("scope") if problem else authorization.scopes
    context = {
        "problem": problem.text if problem else None,
        "library": visit.tenant.name,
        "program": client.name.strip() or client.id,
        "issued": client.issued,
        "destination": _destination(authorization.redirect_target.redirect_uri),
        "person": visit.person,
        "email": form.get("email", ""),
        "form_token": visit.form_token,
        "scopes": [(scope, *SCOPE_TEXTS[scope], scope in ticked) for scope in authorization.scopes],
        "on_api": authorization.surface == REST_API,
    }
    response = _html("consent.html", context, status=problem.status if problem else 200)
    _set_cookie(response, visit, VISIT_COOKIE, visit.id, None)
    return response


def _destination(redirect_uri: str) -> tuple[str, bool]:
    """Returns the host that gets the answer, and whether it is the person's own computer."""
    parts = urlsplit(redirect_uri)
    return parts.netloc, parts.scheme == "http"


def _set_cookie(response: Response, visit: Visit, name: str, value: str, seconds: int | None) -> None:
    response.set_cookie(
        name,
        value,
        max_age=seconds,
        path=_cookie_path(visit),
        secure=visit.request.is_secure,
        httponly=True,
        samesite="Lax",
    )


def _cookie_path(visit: Visit) -> str:
    return f"{urlsplit(visit.tenant.base_url(visit.request.host_url)).path}/"


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
    texts = {each.name: each.read_text("utf-8") for each in folder.iterdir()}
    style = texts["style.css"]
    pages = Environment(loader=DictLoader(texts), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return style, pages
