"""Checks of the stored v3 sign-in: ages of its tokens, its scopes, and whether a renewal could be stored.

Nothing is renewed here.
"""

from __future__ import annotations

from typing import Any

from pipelines.doctor.findings import CheckResult, failed, note, ok, problem, warning
from pipelines.errors import BookferryError, ExitStatus
from pipelines.scopes import BACKUP, SCOPES, abilities
from pipelines.service.clock import Clock
from pipelines.service.sign_in.configured_store import open_tokens
from pipelines.service.sign_in.sign_in_state import SignInState, sign_in_state
from pipelines.service.sign_in.stored_sign_in import local_time
from pipelines.service.sign_in.token_store import LockTakenError
from pipelines.settings.settings import Settings
from pipelines.sign_in_health import warning as sign_in_warning


def check_connection(settings: Settings, tenant: str, clock: Clock) -> list[CheckResult]:
    """The checks of the stored sign-in."""
    try:
        state = sign_in_state(settings, tenant, clock)
    except BookferryError as error:
        return [failed("token", error)]
    found = token(state, tenant, clock.now().timestamp())
    if state.problem is not None:
        return [found]
    return [_write_problem(settings, tenant, clock) or found, scopes(state.scopes, tenant)]


def _write_problem(settings: Settings, tenant: str, clock: Clock) -> CheckResult | None:
    """The problem if new tokens could not be stored. The test writes the stored tokens once more, unchanged."""
    try:
        with open_tokens(settings, tenant).locked(clock, seconds=0.0) as locked:
            locked.write(locked.read())
    except LockTakenError:
        return None  # another process is renewing it now, so it can write
    except BookferryError as error:
        return failed("token", error)
    return None


def token(state: SignInState, tenant: str, now: float) -> CheckResult:
    """Age and next renewal of the access token, which is valid for one hour (service.md#tokens)."""
    again = f"Run `bookferry login {tenant}`."
    facts: dict[str, Any] = {
        "age_seconds": round(now - state.renewed_at) if state.renewed_at is not None else None,
        "seconds_left": _whole_seconds(state.seconds_left),
        "renewed_in_seconds": _whole_seconds(state.renewal_in),
        "signed_in_at": state.signed_in_at,
    }
    if state.problem is not None:
        return problem("token", state.problem, exit_status=ExitStatus.SIGN_IN, **facts)
    if state.refreshing_since is not None:
        message = f"the response to its renewal at {local_time(state.refreshing_since)} was lost; the next use renews it again"
        return warning("token", message, again, **facts)
    if (advice := sign_in_warning(state, now)) is not None:
        return warning("token", advice, again, **facts)
    due = f"renewed in {_duration(state.renewal_in)}" if state.renewal_in else "renewed at the next request"
    since = f"; signed in on {local_time(state.signed_in_at)}" if state.signed_in_at is not None else ""
    return ok("token", f"good for {_duration(state.seconds_left)}, {due}{since}", **facts)


def scopes(granted: tuple[str, ...], tenant: str) -> CheckResult:
    """Whether the scopes are enough for the nightly backup and for a migration into this tenant (service.md#scopes)."""
    facts: dict[str, Any] = {"scopes": list(granted), "missing": [one for one in BACKUP.scopes if one not in granted]}
    again = f"Run `bookferry login {tenant}` and allow them on the consent page."
    if not granted:
        return note(
            "scopes", "the service did not name the scopes of the token; the checks below try what it may read", **facts
        )
    backup, migration = abilities(granted)
    if not backup.works:
        return problem("scopes", f"backup: {backup.sentence}", again, exit_status=ExitStatus.SIGN_IN, **facts)
    if backup.lacks:
        return warning("scopes", f"backup: {backup.sentence}", again, **facts)
    unknown = [one for one in granted if one not in SCOPES]
    more = f"; unknown to Bookferry: {', '.join(unknown)}" if unknown else ""
    return ok("scopes", f"backup: {backup.sentence}; migration into it: {migration.sentence}{more}", **facts)


def _whole_seconds(seconds: float | None) -> int | None:
    return round(max(0.0, seconds)) if seconds is not None and abs(seconds) != float("inf") else None


def _duration(seconds: float | None) -> str:
    whole = _whole_seconds(seconds)
    if whole is None:
        return "an unknown time"
    if whole < 120:  # noqa: PLR2004
        return f"{whole} s"
    return f"{whole / 60:.0f} min" if whole < 2 * 3600 else f"{whole / 3600:.0f} hours"
