"""Reads Retry-After: how long the service asks us to wait."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

MAX_WAIT = 3600.0
"""Seconds that one request may take with all its waits. A service that asks for more ends the run, which says until when."""


DEFAULT_PAUSE = 5.0
"""Seconds that everybody waits after a 429 that does not say how long. `MAX_THROTTLED` of them outlast any one-minute window."""


def pause_for_all(response: httpx.Response, now: datetime) -> float:
    """Seconds for which a 429 stops everybody who talks to the library: the full Retry-After (I1).

    Nobody waits for what is beyond `MAX_WAIT`: the run ends, and the next one asks anew.
    """
    asked = retry_after(response, now)
    if asked is None:
        return DEFAULT_PAUSE
    return asked if asked <= MAX_WAIT else 0.0


def retry_after(response: httpx.Response, now: datetime) -> float | None:
    """Seconds the service asks us to wait: from its Retry-After as seconds or as an HTTP date (trap A7).

    `None` where the header is missing or says nothing usable (not a number, not a date, zero, in the past). A date is held against the
    service's own Date header where there is one, because our clock may be wrong.
    """
    text = response.headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        seconds = float(text[:18])  # longer is absurd anyway, and no float overflows
    else:
        then, sent = http_date(text), http_date(response.headers.get("date", ""))
        if then is None:
            return None
        seconds = (then - (sent or now)).total_seconds()
    return seconds if seconds > 0 else None


def http_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text[:100])
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
