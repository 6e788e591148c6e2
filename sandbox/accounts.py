"""Sign-in of people: accounts with their passwords, and sessions of browsers."""

from __future__ import annotations

import hmac
import secrets

from sandbox.state.records import Document
from sandbox.tenants import Tenant

SESSION_COOKIE = "_library_session"


def with_password(tenant: Tenant, email: str, password: str) -> Document | None:
    """Returns the person with these credentials. Assumption: who has no password of their own has that of the first account."""
    person = tenant.records["users"].find("email", email)
    own = person and (person.get("password") or tenant.account.password)
    return person if own and hmac.compare_digest(own.encode(), password.encode()) else None


def with_session(tenant: Tenant, cookie: str | None) -> Document | None:
    """Returns the person of a browser's session, or of that of the ready line."""
    if cookie and cookie == tenant.session_cookie:
        return tenant.records["users"].find("email", tenant.account.email)
    session = tenant.records["sessions"].find("cookie", cookie) if cookie else None
    if session is None or session["expires_at"] <= tenant.clock.now():
        return None
    return tenant.records["users"].get(session["person"])


def open_session(tenant: Tenant, person: Document, seconds: int) -> str:
    """Opens a session of a browser, and returns its cookie."""
    cookie, expires_at = secrets.token_hex(16), tenant.clock.now() + seconds
    tenant.records["sessions"].create({"cookie": cookie, "person": person["id"], "expires_at": expires_at})
    return cookie


def close_session(tenant: Tenant, cookie: str | None) -> None:
    """Ends a session of a browser, but not that of the ready line."""
    if session := cookie and tenant.records["sessions"].find("cookie", cookie):
        tenant.records["sessions"].remove(session["id"])
