"""Sign-in of people: accounts with their passwords, and the session of a browser."""

from __future__ import annotations

import hmac

from sandbox.state.records import Document
from sandbox.tenants import Tenant

SESSION_COOKIE = "_library_session"


def with_password(tenant: Tenant, email: str, password: str) -> Document | None:
    """Returns the person with these credentials. Assumption: who has no password of their own has that of the first account."""
    person = tenant.records["users"].find("email", email)
    own = person and (person.get("password") or tenant.account.password)
    return person if own and hmac.compare_digest(own.encode(), password.encode()) else None
