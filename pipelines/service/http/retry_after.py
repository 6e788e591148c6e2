"""Reads the header Retry-After: how long the service asks us to wait (I1)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

MAX_WAIT = 3600.0
"""Seconds that one request may take, all waits included. If the service asks for more, the run ends and its message says until when."""


DEFAULT_PAUSE = 5.0
"""Seconds that every request waits after a 429 without a usable Retry-After. `MAX_THROTTLED` of these pauses outlast any window of one
minute.
"""


def pause_for_all(response: httpx.Response, now: datetime) -> float:
    """Returns the seconds for which a 429 stops every request to the library: the full Retry-After (I1).

    Returns 0 for more than `MAX_WAIT` seconds: then this run ends, and the next run asks again.
    """
    asked = retry_after(response, now)
    if asked is None:
        return DEFAULT_PAUSE
    return asked if asked <= MAX_WAIT else 0.0


def retry_after(response: httpx.Response, now: datetime) -> float | None:
    """Returns the seconds that the service asks us to wait; Retry-After has seconds or an HTTP date (I1).

    Returns `None` if the header is missing or unusable (no number, no date, zero, in the past). A date is compared with the response's own
    Date header if there is one, because our clock may be wrong.
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
    """Returns the time of an HTTP date; `None` if the text is no date."""
    try:
        moment = parsedate_to_datetime(text[:100])
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
