"""Users in version 2: created, given roles, deleted, and never listed."""

from __future__ import annotations

from werkzeug.wrappers import Response

from sandbox.both_versions import people
from sandbox.both_versions.people import USER_SCHEMAS, short_record
from sandbox.endpoints import Answer, Call, Endpoint

# Assumption: these two, because version 3 has the unified PATCH /users/:id in the place of the second, and its own first
_DEPRECATED = ("POST /users", "PATCH /users/:id/roles")
_HEADERS = {"X-API-Deprecation": "This endpoint is deprecated"}


def create_user(call: Call) -> Response:
    """A new user."""
    return people.create_user(call, short_record)


def change_roles(call: Call) -> Response:
    """A user with other roles."""
    return people.change_user(call, short_record)


def delete_user(call: Call) -> Response:
    """The end of a user."""
    return people.delete_user(call)


SCHEMAS = {name: USER_SCHEMAS[name] for name in ("User", "UserCreate", "UserRoles")}

ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/users",
        summary="Create a user",
        doc="Deprecated. The person gets a mail. 422 when another user has the address.",
        handler=create_user,
        payload="UserCreate",
        answer=Answer("The user", "User", _HEADERS),
        scope="users:write",
        deprecated_fields=_DEPRECATED[:1],
    ),
    Endpoint(
        method="PATCH",
        path="/users/{id}/roles",
        summary="Give a user other roles",
        doc="Deprecated.",
        handler=change_roles,
        payload="UserRoles",
        answer=Answer("The changed user", "User", _HEADERS),
        refusals=(404,),
        scope="users:write",
        deprecated_fields=_DEPRECATED[1:],
    ),
    Endpoint(
        method="DELETE",
        path="/users/{id}",
        summary="Delete a user",
        doc="403 for the own account.",
        handler=delete_user,
        answer=Answer("An empty object", "Nothing"),
        refusals=(404,),
        scope="users:write",
    ),
)
