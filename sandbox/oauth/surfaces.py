"""The targets of a token below a tenant's address: the REST API or the MCP server.

They are stored by name, so that a grant is valid after a restart on another port.
"""

from __future__ import annotations

from sandbox.oauth.errors import invalid_target
from sandbox.oauth.scopes import is_read_only
from sandbox.state.records import Document

REST_API = "rest_api"
MCP_SERVER = "mcp_server"
PATHS = {REST_API: "/api/v3", MCP_SERVER: "/mcp"}


def target_surface(client: Document, resource: str | None, base_url: str) -> str:
    """Returns the surface of an authorization's token, or raises ``invalid_target`` (service.md#oauth).

    The tokens of an issued client are for the REST API. A client that registered itself has to name that; if it registered for
    reading only and does not, its token is for the MCP server.
    """
    if resource is not None:
        check_resource(resource, REST_API, base_url)
    if resource is not None or client["issued"]:
        return REST_API
    if is_read_only(client["scope"].split()):
        return MCP_SERVER
    raise invalid_target(f"resource is missing; it must be {base_url}{PATHS[REST_API]}")


def check_resource(resource: str, surface: str, base_url: str) -> None:
    """Raises ``invalid_target`` if ``resource`` is not the address of this surface."""
    if resource != base_url + PATHS[surface]:
        raise invalid_target(f"resource must be {base_url}{PATHS[surface]}")
