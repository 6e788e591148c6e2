"""Checks of a v3 sign-in as it is kept: its tokens' ages, and whether its scopes are enough. Nothing is renewed here."""

from __future__ import annotations

from typing import Any

from pipelines.doctor.findings import Finding, failed, note, ok, problem, warning
from pipelines.errors import BookferryError, ExitStatus
from pipelines.service.clock import Clock
from pipelines.service.renewal import grant_of, margin
from pipelines.service.tokens import Connection, Grant, Moment, TokenStore, time_of
from pipelines.settings import SCOPES

NEEDED = {"library:read": "publications and everything that belongs to them"}
"""Scope → what no backup can do without (service-api.md, v3 scopes)."""

WANTED = {
    "assets:read": "the content of files",
    "users:read": "users",
    "tasks:read": "tasks",
}
"""Scope → what a backup leaves out without it."""

MIGRATION = ("library:write", "assets:write")
"""What a migration into this tenant needs as well."""

SOON = 7 * 24 * 3600.0
"""Seconds before the end of a sign-in from which on it is a warning."""


def check_connection(store: TokenStore, tenant: str, clock: Clock) -> list[Finding]:
    """What the store says of a sign-in."""
    try:
        connection = store.read()
        grant = grant_of(connection)
    except BookferryError as error:
        return [failed("token", error)]
    return [token(connection, grant, tenant, Moment.now(clock)), scopes(grant.scopes, tenant)]


def token(connection: Connection, grant: Grant, tenant: str, now: Moment) -> Finding:
    """How old the access token is and when it is renewed (service-api.md: "An access token is valid for one hour")."""
    age, left = grant.obtained.age(now), grant.left(now)
    facts = {
        "age_seconds": round(age) if age != float("inf") else None,
        "renewed_in_seconds": max(0, round(left - margin(grant))) if left != float("-inf") else 0,
        "signed_in_at": grant.signed_in_at,
        "refreshes": grant.refreshes,
    }
    again = f"Run `bookferry login {tenant}`."
    if grant.refresh_token is None:
        if left <= 0:
            return problem(
                "token",
                "is over, and there is no refresh token to renew it with",
                again,
                exit_status=ExitStatus.SIGN_IN,
                **facts,
            )
        return warning(
            "token", f"good for {_long(left)}, and there is no refresh token to renew it with", again, **facts
        )
    if connection.refreshing_since is not None:
        since = time_of(connection.refreshing_since)
        return warning(
            "token",
            f"an answer to a renewal at {since} was lost; it is asked for again when the token is next needed",
            again,
            **facts,
        )
    if grant.ends_at is not None and grant.ends_at - now.wall < SOON:
        ending = time_of(grant.ends_at)
        return warning(
            "token",
            f"the sign-in ends at {ending} unless it is used before",
            "Run any command, or the nightly backup.",
            **facts,
        )
    soon = f"renewed in {_long(left - margin(grant))}" if left > margin(grant) else "renewed at the next request"
    times = f", {grant.refreshes} times renewed" if grant.refreshes else ""
    return ok("token", f"{_long(age)} old, {soon}; signed in on {time_of(grant.signed_in_at)}{times}", **facts)


def scopes(granted: tuple[str, ...], tenant: str) -> Finding:
    """Whether the scopes are enough for the nightly backup, and for a migration into this tenant (trap A11)."""
    facts: dict[str, Any] = {
        "scopes": list(granted),
        "missing": [one for one in (*NEEDED, *WANTED) if one not in granted],
    }
    again = f"Run `bookferry login {tenant}` and allow them on the consent page."
    if not granted:
        return note(
            "scopes", "the service did not say which scopes the token has; what it may read is tried below", **facts
        )
    if lacking := [one for one in NEEDED if one not in granted]:
        return problem(
            "scopes",
            f"{_list(lacking)} is missing: no backup is possible",
            again,
            exit_status=ExitStatus.SIGN_IN,
            **facts,
        )
    if less := [one for one in WANTED if one not in granted]:
        without = " and ".join(f"{WANTED[one]} ({one})" for one in less)
        return warning("scopes", f"a backup is possible, but without {without}", again, **facts)
    writes = [one for one in MIGRATION if one not in granted]
    migration = (
        f"; a migration into this library would also need {_list(writes)}"
        if writes
        else "; enough for a migration, too"
    )
    unknown = [one for one in granted if one not in SCOPES]
    return ok("scopes", f"enough for the backup{migration}{f'; unknown: {_list(unknown)}' if unknown else ''}", **facts)


def _list(names: list[str]) -> str:
    return ", ".join(names)


def _long(seconds: float) -> str:
    if seconds == float("inf"):
        return "an unknown time"
    if seconds < 120:  # noqa: PLR2004
        return f"{max(0, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * 3600 else f"{seconds / 3600:.0f} hours"
