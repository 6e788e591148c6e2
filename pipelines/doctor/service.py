"""Checks of the service: sign-in, clock, versions, end of v2. Each evaluates responses that arrived already."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from pipelines.doctor.findings import CheckResult, failed, note, ok, problem, warning
from pipelines.errors import BookferryError, ExitStatus
from pipelines.inventory import LAST_DAY_OF_V2
from pipelines.service.probe import ProbeResponse
from pipelines.service.redaction import outside_text

EARLY = timedelta(days=90)
"""With more time than that, the end of v2 is only a note."""

EXACT = timedelta(seconds=5)
WRONG = timedelta(seconds=60)
"""Differences of clocks: below the first nothing suffers; above the second, times in reports and ages of tokens are wrong."""

OTHER_VERSION = {"v2": "v3", "v3": "v2"}

LONGEST_NAME = 80
"""Characters of a name from the service in a message."""


def reachable(answer: ProbeResponse | None, trouble: BookferryError | None) -> CheckResult:
    """Whether the service answers the listing that every backup begins with. A refused sign-in is an answer, too."""
    if answer is None:
        return failed("service", trouble or BookferryError("the service was not asked"))
    if answer.status in REFUSALS:
        return ok("service", "answers", http_status=answer.status)
    if answer.error is not None:
        return failed("service", answer.error, http_status=answer.status)
    if answer.records is None:
        return problem(
            "service",
            f"GET {outside_text(answer.address)} answered 200, but with no list of records.",
            "Is base_url the library's address? Open it with /api at its end in a browser: it shows the library's documentation.",
            http_status=answer.status,
        )
    took = (answer.answered_at - answer.asked_at) / timedelta(milliseconds=1)
    return ok("service", f"answers, in {took:,.0f} ms", http_status=answer.status)


REFUSALS = (401, 403)
"""Statuses that refuse the sign-in, not the request."""


def sign_in(answer: ProbeResponse, who: str) -> CheckResult:
    """Whether the service accepts the sign-in and lets this account read publications."""
    if answer.error is not None:
        return failed("sign-in", answer.error, http_status=answer.status)
    return ok("sign-in", f"accepted{f', as {outside_text(who, LONGEST_NAME)}' if who else ''}", user=who or None)


def person(answer: ProbeResponse | None) -> str:
    """Who is signed in, from `GET /users/me` (v3: "own record", no scope needed); empty if the response does not say."""
    record = answer.json if answer is not None and answer.error is None else None
    inside = record.get("user", record) if isinstance(record, dict) else None
    if not isinstance(inside, dict):
        return ""
    roles = inside.get("roles")
    named = ", ".join(str(role) for role in roles) if isinstance(roles, list) else ""
    name = str(inside.get("email") or inside.get("name") or "")
    return outside_text(f"{name} ({named})" if named and name else name, LONGEST_NAME)


def clock(answers: list[ProbeResponse]) -> CheckResult:
    """The difference of the service's clock from ours, by the quickest response."""
    dated = [answer for answer in answers if answer.clock_difference is not None]
    if not dated:
        return note("clock", "the service sends no time (no Date header)", difference_seconds=None)
    quickest = min(dated, key=lambda answer: answer.answered_at - answer.asked_at)
    ahead = quickest.clock_difference or timedelta()
    facts: dict[str, Any] = {"difference_seconds": round(ahead.total_seconds())}
    if abs(ahead) <= EXACT:
        return ok("clock", "this machine and the service agree", **facts)
    message = f"the service's clock is {_duration(abs(ahead))} {'ahead of' if ahead > timedelta() else 'behind'} this machine's"
    if abs(ahead) <= WRONG:
        return note("clock", message, **facts)
    return warning(
        "clock",
        message,
        "Set this machine's clock by NTP (see `timedatectl`). Schedules, the ages of tokens and the times in manifests depend on it.",
        **facts,
    )


def _duration(past: timedelta) -> str:
    seconds = round(past.total_seconds())
    if seconds < 120:  # noqa: PLR2004
        return f"{seconds} s"
    if seconds < 2 * 3600:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:,.1f} hours"


def other_version(api: str, answer: ProbeResponse | None) -> CheckResult:
    """Whether the service also has the version that this tenant does not use. The request has no sign-in, so a 401 means yes."""
    other = OTHER_VERSION[api]
    if answer is None:
        return note("versions", f"{api} is used; {other} did not answer", other=other, other_answers=False)
    there = answer.status in (200, 401, 403, 429) and "html" not in answer.header("content-type").lower()
    presence = "answers as well" if there else f"is not there ({answer.status})"
    return ok("versions", f"{api} is used; {other} {presence}", other=other, other_answers=there)


def end_of_v2(api: str, today: date, *, answers: bool) -> CheckResult:
    """How long v2 remains available. It is a problem only after the last day, when v2 no longer answers."""
    left = (LAST_DAY_OF_V2 - today).days
    facts: dict[str, Any] = {"days_left": left, "last_day": LAST_DAY_OF_V2.isoformat()}
    if api != "v2":
        return ok("end of v2", "this tenant does not depend on v2", **facts)
    if left < 0:
        return _after_the_end(-left, answers=answers, facts=facts)
    message = f"v2 is shut down at the end of 2026: {_days(left)}"
    if timedelta(days=left) > EARLY:
        return note("end of v2", message, _MOVE, **facts)
    if left > 30:  # noqa: PLR2004  a month
        return warning("end of v2", message, _MOVE, **facts)
    return warning("end of v2", f"{message}!", f"{_MOVE} Make a last backup of v2 before that day.", **facts)


def _after_the_end(days: int, *, answers: bool, facts: dict[str, Any]) -> CheckResult:
    if answers:
        return warning(
            "end of v2",
            f"v2 was to be shut down {days} days ago. It still answers; it may stop at any moment!",
            _MOVE,
            **facts,
        )
    return problem(
        "end of v2", f"v2 was to be shut down at the end of 2026, {days} days ago, and does not answer as it did.", _MOVE,
        exit_status=ExitStatus.USAGE, **facts,
    )  # fmt: skip


_MOVE = 'Move to v3: set api = "v3" for this tenant (or for another entry with the same base_url), then run `bookferry login`.'


def _days(count: int) -> str:
    return {0: "this is the last day", 1: "1 day left"}.get(count, f"{count} days left")


def readable(resource: str, answer: ProbeResponse | None) -> CheckResult:
    """Whether the account, with the scopes of its token, may list a resource that needs a scope of its own."""
    name = f"reads {resource}"
    if answer is None:
        return note(name, "could not be tested: no answer")
    if answer.records is not None:
        return ok(name, "allowed")
    if answer.status in (401, 403):
        scope = outside_text(answer.header("www-authenticate"), 200)
        return warning(
            name,
            f"refused ({answer.status}{f', {scope}' if scope else ''}): a backup leaves them out and reports that",
            "Give the account that right, or sign in again with that scope: `bookferry login`.",
            http_status=answer.status,
        )
    return note(name, f"not offered here ({answer.status}): a backup has none", http_status=answer.status)
