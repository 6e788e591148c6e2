"""Where the tenant is, as the caller wrote its host."""

from __future__ import annotations

from werkzeug.wrappers import Request

from sandbox.tenants import Tenant


def base_url(request: Request, tenant: Tenant) -> str:
    """``{base_url}`` of the document."""
    return f"{request.host_url}{tenant.name}"
