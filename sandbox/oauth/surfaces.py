"""The targets a token can be valid for, below a tenant's address: the REST API, or the MCP server.

They are kept by name, not by address: a grant outlives a restart on another port.
"""

from __future__ import annotations

from sandbox.oauth.errors import invalid_target
from sandbox.oauth.scopes import is_read_only
from sandbox.state.clients import Client

REST_API = "rest_api"
MCP_SERVER = "mcp_server"
PATHS = {REST_API: "/api/v3", MCP_SERVER: "/mcp"}


def target_surface(client: Client, resource: str | None, base_url: str) -> str:
    """The surface that the token of an authorization is for, or ``invalid_target``.

    The document: the one target is ``{base_url}/api/v3``; an issued client's surface "is filled in"; a self-registered one
    has to name it, unless it registered for reading only: then the token is bound to the MCP server.
    """
    surface = client.surface or REST_API
    if resource is not None:
        check_resource(resource, surface, base_url)
        return surface
    if client.surface is not None:
        return client.surface
    if is_read_only(client.scopes):
        return MCP_SERVER
    raise invalid_target(f"resource is missing; it must be {base_url}{PATHS[REST_API]}")


def check_resource(resource: str, surface: str, base_url: str) -> None:
    """Refuse a ``resource`` that is not the address of this surface."""
    if resource != base_url + PATHS[surface]:
        raise invalid_target(f"resource must be {base_url}{PATHS[surface]}")
