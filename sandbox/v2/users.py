"""Endpoints of users in version 2, which does not list them."""

from __future__ import annotations

from werkzeug.wrappers import Response

from sandbox.both_versions import users
from sandbox.both_versions.users import USER_SCHEMAS
from sandbox.endpoints import Call, Endpoint, SuccessResponse

# Assumption: these two, because version 3 replaces them
_DEPRECATED = ("POST /users", "PATCH /users/:id/roles")
_HEADERS = {"X-API-Deprecation": "This endpoint is deprecated"}


def change_roles(call: Call) -> Response:
    """Changes the roles of a user."""
    return users.change_user(call)


SCHEMAS = USER_SCHEMAS

ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/users",
        summary="Create a user",
        doc="Deprecated. The person gets a mail. 422 when another user has the address.",
        handler=users.create_user,
        action="create",
        payload="UserCreate",
        success=SuccessResponse("The user", "User", _HEADERS),
        scope="users:write",
        deprecated_fields=_DEPRECATED[:1],
    ),
    Endpoint(
        method="PATCH",
        path="/users/{id}/roles",
        summary="Change the roles of a user",
        doc="Deprecated.",
        handler=change_roles,
        payload="UserRoles",
        success=SuccessResponse("The changed user", "User", _HEADERS),
        refusals=(404,),
        scope="users:write",
        deprecated_fields=_DEPRECATED[1:],
    ),
    users.DELETE_USER,
)
