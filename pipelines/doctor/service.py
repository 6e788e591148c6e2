"""Checks of the service: sign-in, clock, versions, end of v2. Each one reads responses that are already there."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from http import HTTPStatus
from typing import Any

from pipelines.doctor.findings import CheckResult, failed, note, ok, problem, warning
from pipelines.errors import BookferryError, ExitStatus
from pipelines.inventory import LAST_DAY_OF_V2
from pipelines.service.end_of_v2 import is_served
from pipelines.service.probe import ProbeResponse
from pipelines.service.redaction import outside_text

EARLY = timedelta(days=90)
"""Earlier than this before the end of v2, the check is only a note."""

EXACT = timedelta(seconds=5)
WRONG = timedelta(seconds=60)
"""Differences of clocks: below the first, there is no effect; above the second, times in reports and token lifetimes are wrong."""

LONGEST_NAME = 80
"""Most characters of a name from the service."""


def reachable(
    answer: ProbeResponse | None, trouble: BookferryError | None, v3: ProbeResponse | None = None
) -> CheckResult:
    """Whether the service answers the list request with which every backup begins, signed in or not.

    `v3`: what version 3 answers, if the list of version 2 is none.
    """
    if answer is None:
        return failed("service", trouble or BookferryError("no request was sent to the service"))
    if answer.status in REFUSALS:
        return ok("service", "answers", http_status=answer.status)
    if answer.error is not None:
        found = failed("service", answer.error, http_status=answer.status)
        lost = v3 is not None and not is_served(v3.response) and answer.status != HTTPStatus.GONE
        return replace(found, todo=_NEITHER) if lost else found
    if answer.records is None:
        return problem(
            "service",
            f"GET {outside_text(answer.address)} returned 200, but no list of records.",
            "Is base_url the library's address? Add /api to it and open it in a browser: the library's documentation should appear.",
            http_status=answer.status,
        )
    took = (answer.answered_at - answer.asked_at) / timedelta(milliseconds=1)
    return ok("service", f"answers, in {took:,.0f} ms", http_status=answer.status)


_NEITHER = "Neither version 2 nor version 3 is there. Is base_url the library's address, without /api?"

REFUSALS = (401, 403)
"""Statuses that concern the account, not the request."""


def sign_in(answer: ProbeResponse, who: str) -> CheckResult:
    """Whether the service accepts the sign-in, and lets this account read publications."""
    if answer.error is not None:
        return failed("sign-in", answer.error, http_status=answer.status)
    return ok("sign-in", f"accepted{f', as {outside_text(who, LONGEST_NAME)}' if who else ''}", user=who or None)


def person(answer: ProbeResponse | None) -> str:
    """The signed-in user, from `GET /users/me` (service.md#users); empty if the response does not name one."""
    record = answer.json if answer is not None and answer.error is None else None
    inside = record.get("user", record) if isinstance(record, dict) else None
    if not isinstance(inside, dict):
        return ""
    roles = inside.get("roles")
    named = ", ".join(str(role) for role in roles) if isinstance(roles, list) else ""
    name = str(inside.get("email") or inside.get("name") or "")
    return outside_text(f"{name} ({named})" if named and name else name, LONGEST_NAME)


def clock(answers: list[ProbeResponse]) -> CheckResult:
    """Difference between the service's clock and this machine's, from the fastest response."""
    dated = [answer for answer in answers if answer.clock_difference is not None]
    if not dated:
        return note("clock", "the service does not send its time (no Date header)", difference_seconds=None)
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
        "Set this machine's clock by NTP (see `timedatectl`). The schedule, token ages and times in manifests depend on it.",
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
    """Whether the version that this tenant does not use also exists. The request has no sign-in, so 401 means that it exists."""
    other = {"v2": "v3", "v3": "v2"}[api]
    if answer is None:
        return note("versions", f"{api} is used; {other} did not answer", other=other, other_answers=False)
    there = is_served(answer.response)
    state = "also answers" if there else f"does not exist ({answer.status})"
    return ok("versions", f"{api} is used; {other} {state}", other=other, other_answers=there)


def lists_of_v2() -> CheckResult:
    """Which lists version 2 documents (service.md#v2)."""
    return note(
        "other lists",
        "v2 documents no list of users, hard copies, collections, authorities or tasks",
        'To back them up, too, add a tenant of the same library with api = "v3". `bookferry describe` shows which of them v2 has all the '
        "same.",
    )


def end_of_v2(api: str, today: date, *, answers: bool, ended: bool = False) -> CheckResult:
    """Days until the end of v2 (service.md#shutdown). It is a problem if v2 has ended."""
    left = (LAST_DAY_OF_V2 - today).days
    facts: dict[str, Any] = {"days_left": left, "last_day": LAST_DAY_OF_V2.isoformat()}
    if api != "v2":
        return ok("end of v2", "this tenant does not depend on v2", **facts)
    if ended:
        message = "v2 of this library has ended: it answers no list of publications any more"
        return problem("end of v2", message, _MOVE, exit_status=ExitStatus.USAGE, **facts)
    if left < 0:
        return _after_the_end(-left, answers=answers, facts=facts)
    message = f"v2 is shut down at the end of 2026: {_days(left)}"
    if timedelta(days=left) > EARLY:
        return note("end of v2", message, _MOVE, **facts)
    if left > 30:  # noqa: PLR2004  a month
        return warning("end of v2", message, _MOVE, **facts)
    return warning("end of v2", f"{message}!", f"{_MOVE} Make a last backup of v2 before that day.", **facts)


def _after_the_end(days: int, *, answers: bool, facts: dict[str, Any]) -> CheckResult:
    now = "It still answers, but may stop at any moment!" if answers else "That may be why it answers no list."
    return warning("end of v2", f"v2 was due to be shut down {days} days ago. {now}", _MOVE, **facts)


_MOVE = 'Move to v3: set api = "v3" for this tenant (or for another entry with the same base_url), then run `bookferry login`.'


def _days(count: int) -> str:
    return {0: "this is the last day", 1: "1 day left"}.get(count, f"{count} days left")


def readable(resource: str, answer: ProbeResponse | None) -> CheckResult:
    """Whether the account may list a resource that has a scope of its own (service.md#scopes)."""
    name = f"reads {resource}"
    if answer is None:
        return note(name, "could not be tested: no response")
    if answer.records is not None:
        return ok(name, "allowed")
    if answer.status in (401, 403):
        scope = outside_text(answer.header("www-authenticate"), 200)
        return warning(
            name,
            f"refused ({answer.status}{f', {scope}' if scope else ''}): backups leave them out, and report that",
            "Give the account that right, or sign in again with that scope: `bookferry login`.",
            http_status=answer.status,
        )
    return note(
        name, f"this service does not offer them ({answer.status}): backups have none", http_status=answer.status
    )
