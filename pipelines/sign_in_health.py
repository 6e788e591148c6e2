"""The care of a sign-in: its owner, its renewal while it is not used, and warnings before it lapses."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import Any

from pipelines.service.client import open_client
from pipelines.service.clock import SystemClock
from pipelines.service.http.budget import Budget
from pipelines.service.http.responses import as_object
from pipelines.service.redaction import outside_text
from pipelines.service.sign_in.bearer import open_refresher
from pipelines.service.sign_in.sign_in_state import SignInState
from pipelines.service.sign_in.stored_sign_in import Grant
from pipelines.settings.settings import Settings
from pipelines.state.store import State

STALE_AFTER = timedelta(days=3)
"""Age of a renewal; a sign-in that is older has missed the nightly renewal more than once."""


def who_am_i(settings: Settings, tenant: str, *, state: State) -> dict[str, Any]:
    """The documented fields of the signed-in user's own record. Needs no scope (service.md#users)."""
    with open_client(settings, tenant, state=state) as client:
        answer = as_object(client.get(f"{client.api_url}/users/me"))
    inner = [member for member in answer.values() if isinstance(member, dict)]
    record = inner[0] if "id" not in answer and len(inner) == 1 else answer  # `{"user": {...}}`
    return {name: _display_value(record[name]) for name in ("id", "name", "email", "roles") if name in record}


def _display_value(value: object) -> object:
    if isinstance(value, list):
        return [_display_value(entry) for entry in value[:50]]
    return value if isinstance(value, int | float | None) else outside_text(value)


def keep_alive(settings: Settings, tenant: str, *, state: State) -> Grant:
    """Renew a v3 tenant's sign-in now and store the new tokens, so that an unused sign-in does not lapse unnoticed."""
    library, limit = settings.budget_of(tenant)
    clock = SystemClock()
    with (
        closing(Budget(state, library, limit, clock)) as budget,
        open_refresher(settings, tenant, budget=budget, clock=clock) as refresher,
    ):
        return refresher.keep_alive()


def warning(state: SignInState, now: float) -> str | None:
    """The reason to renew a sign-in soon, while it still works; None if there is none. `now`: seconds since 1970."""
    if state.problem is not None:
        return state.problem
    if not state.renewable:
        return "The library gave no refresh token: the sign-in ends with its access token, and a person must sign in again."
    if state.renewed_at is not None and now - state.renewed_at > STALE_AFTER.total_seconds():
        days = (now - state.renewed_at) / 86400
        return f"The last renewal of the sign-in was {days:.0f} days ago; it should be renewed every night. Is the daemon running?"
    return None
