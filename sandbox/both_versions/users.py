"""Users in both versions: create, change and delete."""

from __future__ import annotations

from dataclasses import replace

from werkzeug.wrappers import Response

from sandbox.both_versions.assets import presign_endpoint
from sandbox.both_versions.files import cover_record, stored_file
from sandbox.both_versions.resources import Resource
from sandbox.both_versions.schemas import INTEGER, array, or_null, page_of, payload_object, response_object
from sandbox.endpoints import TEXT, Call, Endpoint, Schema
from sandbox.errors import ApiError
from sandbox.state.records import EXTRA, Document

EMAIL: Schema = {"type": "string", "pattern": r"^[^@\s]+@[^@\s]+$"}
NAME: Schema = {"type": "string", "minLength": 1}
ROLES: Schema = array({"type": "string", "minLength": 1})


class _Users(Resource):
    def record(self, document: Document, call: Call) -> Document:
        """Returns a user; version 3 shows the picture, too."""
        record = {name: document[name] for name in ("id", "email", "name", "roles")}
        if call.version.name == "v3":
            record["avatar"] = document["avatar"] and cover_record(document["avatar"], call)
            record[EXTRA] = document.get(EXTRA)
        return record

    def sent(self, call: Call) -> Document:
        """Returns the payload as it is stored: each role once, an uploaded picture as a stored file."""
        values = dict(call.payload)
        if "roles" in values:
            values["roles"] = list(dict.fromkeys(values["roles"]))
        if values.get("avatar"):
            values["avatar"] = stored_file(values["avatar"], call)
        return values

    def get_own(self, call: Call) -> Response:
        """Answers the caller's own record."""
        return self.answer(self.records(call).get(call.signed_in.person["id"]), call)

    def change(self, call: Call) -> Response:
        """Changes a user. Nobody can change the roles of the own account, so nobody locks oneself out."""
        roles = self.records(call).get(call.number)["roles"]
        if call.payload.get("roles", roles) != roles:
            _refuse_own_account(call)
        return super().change(call)

    def delete(self, call: Call) -> Response:
        """Deletes a user with sessions and tokens. Nobody can delete the own account."""
        _refuse_own_account(call)
        return super().delete(call)


def _refuse_own_account(call: Call) -> None:
    if call.number == call.signed_in.person["id"]:
        raise ApiError(403, "AccessDenied", "This is not possible for the own account")


USERS = _Users(
    key="users",
    name="User",
    noun="user",
    path="/users",
    actions=("list", "get", "create", "change", "delete"),
    read="users:read",
    write="users:write",
    defaults={"name": "Unnamed", "roles": [], "avatar": None},
    filters={"email": "email", "name": "name", "role": "roles"},
    docs={
        "create": "The person gets a mail. 422 when another user has the address.",
        "change": "`avatar` takes an upload; null removes the picture.",
        "delete": "403 for the own account.",
    },
)

SCHEMAS = {
    "User": response_object(
        {"id": INTEGER, "email": TEXT, "name": TEXT, "roles": array(TEXT)}, optional={"avatar": or_null("Cover")}
    ),
    "UserCreate": payload_object({"email": EMAIL, "name": NAME, "roles": ROLES}, required=("email", "name")),
    "UserRoles": payload_object({"roles": ROLES}, required=("roles",)),
    "UserList": page_of("User"),
    "UserChange": payload_object({"email": EMAIL, "name": NAME, "roles": ROLES, "avatar": or_null("FileUpload")}),
}

_BY_ACTION = {endpoint.action: endpoint for endpoint in USERS.endpoints()}
_OWN = Endpoint("GET", "/users/me", "The own record", USERS.get_own, answer="User", resource="users")

V3_ENDPOINTS = (*_BY_ACTION.values(), _OWN, presign_endpoint("/users/avatar/presign", "avatars", "users:write"))

# Assumption: these two are deprecated, because version 3 replaces them
V2_ENDPOINTS = (
    replace(_BY_ACTION["create"], deprecated=("POST /users",)),
    replace(
        _BY_ACTION["change"],
        path="/users/{id}/roles",
        summary="Change the roles of a user",
        doc="",
        payload="UserRoles",
        deprecated=("PATCH /users/:id/roles",),
    ),
    _BY_ACTION["delete"],
)
