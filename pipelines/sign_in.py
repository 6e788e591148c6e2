"""What a sign-in allows, and the few things that are done with one besides using it: ask who it is, keep it alive, look at its age."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from pipelines.errors import ProtocolError
from pipelines.service.client import open_client
from pipelines.service.clock import Clock, SystemClock
from pipelines.service.http.budget import Budget
from pipelines.service.redaction import outside_text
from pipelines.service.sign_in.bearer import open_refresher
from pipelines.service.sign_in.sign_in_state import SignInState, sign_in_state
from pipelines.service.sign_in.stored_sign_in import Grant
from pipelines.settings.settings import Settings
from pipelines.settings.tenant import SCOPES

WARN_AHEAD = timedelta(days=7)
"""How long before a sign-in lapses somebody is warned, where the service says when it does."""

STALE_AFTER = timedelta(days=3)
"""A sign-in that was not renewed for so long has missed the nightly renewal more than once."""


@dataclass(frozen=True)
class Job:
    """What Bookferry does with a tenant, and the scopes for it (service-api.md, v3 scopes)."""

    name: str
    needs: Mapping[str, str]
    """Scope → what it is needed for; without it the job does not work."""
    uses: Mapping[str, str]
    """Scope → what is left out without it."""

    @property
    def scopes(self) -> tuple[str, ...]:
        """All of them, in the document's order."""
        return tuple(scope for scope in SCOPES if scope in self.needs or scope in self.uses)


BACKUP = Job(
    "backup",
    {"library:read": "reads publications, copies, collections, authorities"},
    {"assets:read": "reads files and covers", "users:read": "reads users", "tasks:read": "reads tasks"},
)
MIGRATION = Job(
    "migration",
    {"library:read": "looks up what is there already", "library:write": "creates and changes records"},
    {
        "assets:read": "checks the files that were uploaded",
        "assets:write": "uploads files",
        "users:read": "looks up users",
        "users:write": "creates users, only when you ask for it",
        "tasks:read": "looks up tasks",
        "tasks:write": "creates tasks",
    },
)
JOBS = {job.name: job for job in (BACKUP, MIGRATION)}


@dataclass(frozen=True)
class Ability:
    """What a token's scopes allow of one job."""

    job: Job
    lacks: tuple[str, ...]

    @property
    def works(self) -> bool:
        """Whether the job can be done, be it without parts."""
        return not set(self.lacks) & set(self.job.needs)

    @property
    def sentence(self) -> str:
        """For a person."""
        if not self.lacks:
            return "everything"
        if not self.works:
            return f"does not work: {', '.join(scope for scope in self.lacks if scope in self.job.needs)} is missing"
        return "works, but not what " + "; ".join(f"{scope} is for ({self.job.uses[scope]})" for scope in self.lacks)

    def document(self) -> dict[str, Any]:
        """For a script."""
        return {"works": self.works, "complete": not self.lacks, "lacks": list(self.lacks)}


def abilities(scopes: Iterable[str]) -> list[Ability]:
    """What these scopes allow, job by job."""
    held = set(scopes)
    return [Ability(job, tuple(scope for scope in job.scopes if scope not in held)) for job in JOBS.values()]


def who_am_i(settings: Settings, tenant: str, *, state: Path, clock: Clock | None = None) -> dict[str, Any]:
    """The record of whoever signed in (service-api.md: "GET /users/me (own record)", scope "none"), cut to what is documented."""
    with open_client(settings, tenant, state=state, clock=clock) as client:
        response = client.get(f"{client.api_url}/users/me")
    try:
        record = msgspec.json.decode(response.content, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ProtocolError(
            f"GET /users/me answered something that is no user record ({outside_text(error)})."
        ) from None
    return {name: _shown(record[name]) for name in ("id", "name", "email", "roles") if name in record}


def _shown(value: object) -> object:
    if isinstance(value, list):
        return [_shown(each) for each in value[:50]]
    return value if isinstance(value, int | float | None) else outside_text(value)


def keep_alive(settings: Settings, tenant: str, *, state: Path, clock: Clock | None = None) -> Grant:
    """Renew a v3 tenant's sign-in now and keep what comes back, so that one that nobody uses does not lapse unseen."""
    library, limit = settings.budget_of(tenant)
    clock = clock or SystemClock()
    budget = Budget(state, library, limit, clock)
    try:
        with open_refresher(settings, tenant, budget=budget, clock=clock) as renewal:
            return renewal.keep_alive()
    finally:
        budget.close()


def warning(state: SignInState, now: float) -> str | None:
    """Why somebody should look at a sign-in soon, while it still works; None where nothing is wrong. `now`: seconds since 1970."""
    if state.problem is not None:
        return state.problem
    if not state.renewable:
        return "The library gave no refresh token: the sign-in ends with its access token, and a person must sign in again."
    if state.ends_at is not None and state.ends_at - now < WARN_AHEAD.total_seconds():
        days = max(0.0, (state.ends_at - now) / 86400)
        return f"The sign-in lapses in {days:.1f} days unless it is renewed before."
    if state.renewed_at is not None and now - state.renewed_at > STALE_AFTER.total_seconds():
        days = (now - state.renewed_at) / 86400
        return f"The sign-in was renewed {days:.0f} days ago for the last time, although it should be every night. Is the daemon running?"
    return None


__all__ = [
    "BACKUP",
    "JOBS",
    "MIGRATION",
    "Ability",
    "Job",
    "SignInState",
    "abilities",
    "keep_alive",
    "sign_in_state",
    "warning",
    "who_am_i",
]
