"""Endpoints of users in version 3."""

from __future__ import annotations

from werkzeug.wrappers import Response

from sandbox.both_versions import users
from sandbox.both_versions.assets import presign_endpoint
from sandbox.both_versions.schemas import or_null, page_of, payload_object
from sandbox.both_versions.users import EMAIL, NAME, ROLES, USER_SCHEMAS, user_record
from sandbox.endpoints import Call, Endpoint, SuccessResponse
from sandbox.v3.resources import Resource


def get_user(call: Call) -> Response:
    """Returns a user."""
    return call.answer(user_record(users.find_user(call), call))


def get_own_user(call: Call) -> Response:
    """Returns the caller's own record."""
    row = users.user_records(call).get(call.signed_in.person.id)
    return call.answer(user_record(row or {}, call))


USERS = Resource(
    key="users",
    name="User",
    noun="user",
    path="/users",
    read="users:read",
    defaults={"name": "Unnamed"},
    filters={"email": "email", "name": "name", "role": "roles"},
)

SCHEMAS = {
    **USER_SCHEMAS,
    "UserList": page_of("User"),
    "UserChange": payload_object({"email": EMAIL, "name": NAME, "roles": ROLES, "avatar": or_null("FileUpload")}),
}

ENDPOINTS = (
    USERS.listing(user_record),
    Endpoint(
        method="GET",
        path="/users/me",
        summary="The own record",
        handler=get_own_user,
        resource="users",
        success=SuccessResponse("The signed-in user", "User"),
    ),
    Endpoint(
        method="GET",
        path="/users/{id}",
        summary="One user",
        handler=get_user,
        resource="users",
        success=SuccessResponse("The user", "User"),
        refusals=(404,),
        scope="users:read",
    ),
    Endpoint(
        method="POST",
        path="/users",
        summary="Create a user",
        doc="The person gets a mail. 422 when another user has the address.",
        handler=users.create_user,
        resource="users",
        action="create",
        payload="UserCreate",
        success=SuccessResponse("The user", "User"),
        scope="users:write",
    ),
    Endpoint(
        method="PATCH",
        path="/users/{id}",
        summary="Change a user",
        doc="`avatar` takes an upload; null removes the picture.",
        handler=users.change_user,
        resource="users",
        action="change",
        payload="UserChange",
        success=SuccessResponse("The changed user", "User"),
        refusals=(404,),
        scope="users:write",
    ),
    users.DELETE_USER,
    presign_endpoint("/users/avatar/presign", "avatars", "users:write"),
)
