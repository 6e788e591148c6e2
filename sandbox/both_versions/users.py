"""Users in both versions: create, change, delete, and the mail to a new user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from werkzeug.wrappers import Response

from sandbox.both_versions.rendering import cover_record
from sandbox.both_versions.schemas import INTEGER, array, or_null, payload_object, response_object
from sandbox.endpoints import TEXT, Call, Endpoint, Schema, SuccessResponse
from sandbox.errors import ApiError, record_not_found, unprocessable
from sandbox.responses import deleted
from sandbox.state.records import EXTRA, Document, DuplicateValue, Records
from sandbox.tenants import Mail

EMAIL: Schema = {"type": "string", "pattern": r"^[^@\s]+@[^@\s]+$"}
NAME: Schema = {"type": "string", "minLength": 1}
ROLES: Schema = array({"type": "string", "minLength": 1})

_SUBJECT = "Your account at the library"

USER_SCHEMAS = {
    "User": response_object(
        {"id": INTEGER, "email": TEXT, "name": TEXT, "roles": array(TEXT)}, optional={"avatar": or_null("Cover")}
    ),
    "UserCreate": payload_object({"email": EMAIL, "name": NAME, "roles": ROLES}, required=("email", "name")),
    "UserRoles": payload_object({"roles": ROLES}, required=("roles",)),
}


def user_record(row: Document, call: Call) -> dict[str, Any]:
    """Returns a user; version 3 shows the picture, too."""
    record = {name: row[name] for name in ("id", "email", "name", "roles")}
    if call.version.name == "v3":
        record["avatar"] = row["avatar"] and cover_record(row["avatar"], call)
        record[EXTRA] = row.get(EXTRA)
    return record


def user_records(call: Call) -> Records:
    """Returns the table of the tenant's users."""
    return call.tenant.records["users"]


def find_user(call: Call) -> Document:
    """Returns the user of the path, or raises 404."""
    row = user_records(call).get(call.number or 0)
    if row is None:
        raise record_not_found()
    return row


def create_user(call: Call) -> Response:
    """Creates a user, who gets a mail. The address must be new."""
    new = {"email": None, "name": None, "roles": [], "avatar": None, **_stored_values(call)}
    row = _write_or_refuse(lambda: user_records(call).create(new))
    call.tenant.mails.append(Mail(call.tenant.clock.now(), row["email"], _SUBJECT))
    return call.answer(user_record(row, call))


def change_user(call: Call) -> Response:
    """Changes a user. Nobody can change the roles of the own account, so nobody locks oneself out."""
    user = find_user(call)
    number = user["id"]
    if call.payload.get("roles", user["roles"]) != user["roles"]:
        _refuse_own_account(call, number)
    row = _write_or_refuse(lambda: user_records(call).change(number, _stored_values(call)))
    return call.answer(user_record(row, call))


def delete_user(call: Call) -> Response:
    """Deletes a user with sessions and tokens. Nobody can delete the own account."""
    number = find_user(call)["id"]
    _refuse_own_account(call, number)
    user_records(call).remove(number)
    return deleted(call.settings.variations)


DELETE_USER = Endpoint(
    method="DELETE",
    path="/users/{id}",
    summary="Delete a user",
    doc="403 for the own account.",
    handler=delete_user,
    success=SuccessResponse("An empty object", "Nothing"),
    refusals=(404,),
    scope="users:write",
)


def _refuse_own_account(call: Call, number: int) -> None:
    if number == call.signed_in.person.id:
        raise ApiError(403, "AccessDenied", "This is not possible for the own account")


def _stored_values(call: Call) -> Document:
    """Returns the payload as it is stored: each role once, an uploaded picture as a stored file."""
    values = dict(call.payload)
    if "roles" in values:
        values["roles"] = list(dict.fromkeys(values["roles"]))
    if values.get("avatar"):
        avatar = values["avatar"]
        values["avatar"] = call.tenant.storage.promote(avatar["id"], avatar.get("metadata"))
    return values


def _write_or_refuse(write: Callable[[], Document | None]) -> Document:
    try:
        row = write()
    except DuplicateValue:
        raise unprocessable("email: another user has this address") from None
    if row is None:
        raise record_not_found()
    return row
