"""Makes the documentation page from the files beside this one and the descriptions of the endpoints.

One response contains everything and forbids the browser to load anything else, so the page works without other addresses. It
does not count for the rate, because it is not below ``/api/``.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from html import escape
from importlib.resources import files

from werkzeug.wrappers import Request, Response

from sandbox.documentation.openapi import description
from sandbox.endpoints import Version
from sandbox.errors import method_not_allowed
from sandbox.tenants import Tenant

PATHS = ("/api", "/api/")


def respond(request: Request, tenant: Tenant, versions: Iterable[Version]) -> Response:
    """Returns the page, without sign-in."""
    if request.method not in {"GET", "HEAD"}:
        raise method_not_allowed(request.method, ("GET", "HEAD"))
    base_url = tenant.base_url(request.host_url)
    described = {version.name: description(version, base_url) for version in versions}
    style, script = _file("page.css"), _file("page.js")
    parts = {
        "tenant": escape(tenant.name),
        "base_url": escape(base_url),
        "style": style,
        "script": script,
        "descriptions": json.dumps(described).replace("<", "\\u003c"),
    }
    page = _file("page.html")
    for name, text in parts.items():
        page = page.replace(f"{{{{ {name} }}}}", text)
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Response(page, content_type="text/html; charset=utf-8", headers={"Content-Security-Policy": policy})


def _file(name: str) -> str:
    return files("sandbox.documentation").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    """Returns the source that lets a Content-Security-Policy allow exactly this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
