"""`bookferry whoami TENANT`: who is signed in, what the sign-in allows, and how old it is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from rich.console import RenderableType

from cli.login import jobs_table
from cli.output import Answer
from pipelines.errors import SignInError
from pipelines.scopes import jobs_document
from pipelines.service.client import open_client
from pipelines.service.clock import SystemClock
from pipelines.service.end_of_v2 import end_of_v2_explained
from pipelines.service.sign_in.sign_in_state import SignInState, sign_in_state
from pipelines.settings.credentials import BasicCredentials
from pipelines.settings.settings import Settings
from pipelines.sign_in_health import warning, who_am_i
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.store.stores import open_data


def show_sign_in(settings: Settings, *, tenant: str) -> Answer:
    """Ask the library who is signed in."""
    data = open_data(settings)
    data.prepare()
    ask = _ask_v2 if settings.tenant(tenant).api == "v2" else _ask_v3
    return ask(settings, tenant, data)


def _ask_v2(settings: Settings, tenant: str, data: DataFolder) -> Answer:
    """v2 has no endpoint for the signed-in user (service.md#v2). The result is that the library accepts the configured sign-in."""
    chosen, credentials = settings.tenant(tenant), settings.credentials(tenant)
    with open_client(settings, tenant, state=data.state) as client, end_of_v2_explained(client, tenant):
        client.get(f"{client.api_url}/publications", {"per_page": 1})
    user = credentials.username if isinstance(credentials, BasicCredentials) else None
    document = {"tenant": tenant, "api": "v2", "base_url": chosen.base_url, "accepted": True, "user": user}
    sign_in = f"user name {user}" if user else "the session cookie of a browser"
    lines = [
        f"'{tenant}' ({chosen.base_url}, v2) accepts {sign_in}.",
        "v2 has no scopes and does not say who is signed in. The roles of the account decide what is allowed.",
    ]
    return Answer(document, lines)


def _ask_v3(settings: Settings, tenant: str, data: DataFolder) -> Answer:
    person = who_am_i(settings, tenant, state=data.state)
    state = sign_in_state(settings, tenant, SystemClock())
    if state.problem is not None:
        raise SignInError(state.problem)
    return Answer(_document(settings, tenant, person, state), _lines(settings, tenant, person, state))


def _document(settings: Settings, tenant: str, person: dict[str, Any], state: SignInState) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "api": "v3",
        "base_url": settings.tenant(tenant).base_url,
        "person": person,
        "scopes": list(state.scopes),
        "jobs": jobs_document(state.scopes),
        "signed_in_at": _time(state.signed_in_at),
        "renewed_at": _time(state.renewed_at),
        "renewable": state.renewable,
        "warning": _warning(state),
        "kept_in": state.place,
    }


def _lines(settings: Settings, tenant: str, person: dict[str, Any], state: SignInState) -> Iterator[RenderableType]:
    name, email = person.get("name") or "somebody without a name", person.get("email")
    named = person.get("roles") or []
    roles = ", ".join(map(str, named if isinstance(named, list) else [named])) or "none named"
    yield f"{name}{f' <{email}>' if email else ''} is signed in to '{tenant}' ({settings.tenant(tenant).base_url}, v3)."
    yield f"Roles: {roles}. Scopes: {' '.join(state.scopes) or 'none'}."
    yield f"Signed in {_time(state.signed_in_at)}, renewed {_time(state.renewed_at)}."
    if (advice := _warning(state)) is not None:
        yield advice
    yield jobs_table(state.scopes)


def _warning(state: SignInState) -> str | None:
    return warning(state, datetime.now(UTC).timestamp())


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
