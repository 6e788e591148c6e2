"""Reads `X-API-Deprecation`: the names that the service announces as deprecated, and the day if it names one (service.md#deprecation).

The form of the header is an assumption (docs/assumptions.md A37): names separated by commas. A day may stand beside a name or alone, as
`import_state; sunset=2026-12-31`. Any other text counts as a name, shortened, so that nothing that was announced is lost.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import httpx

from pipelines.service.http.retry_after import http_date
from pipelines.service.redaction import outside_text

HEADER = "x-api-deprecation"

MAX_NAMES = 100
"""Names that one run keeps at most (I13)."""

_LENGTH = 80
"""Characters of a name that are kept."""

_HTTP_DATE = re.compile(
    r"(?:[A-Z][a-z]{2,8},?\s+)?\d{1,2}\s+[A-Z][a-z]{2}\s+\d{4}(?:\s+\d\d:\d\d:\d\d(?:\s+(?:GMT|UTC))?)?"
)
_SECONDS = re.compile(r"@(\d{9,10})\b")
_DAY = re.compile(r"\b(\d{4}-\d\d-\d\d)(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?")
_WORDS = r"(?:sunset|date|day|since|until|till|from|on|by|ends?|removed|deprecated)"
_ABOUT_DAY = re.compile(rf"(?:[\s;:=(,-]+{_WORDS})+[\s=:\")]*$", re.IGNORECASE)
_ONLY_DAY = re.compile(rf"{_WORDS}?", re.IGNORECASE)
_ITEM = re.compile(r'(?:[^",]++|"[^"]*+"?)++')
_YES = frozenset({"true", "yes", "1", "?1"})
"""Values that say that the requested address itself is deprecated."""


class Announcements:
    """Collects what the responses of one client announce. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read: set[str] = set()
        self._found: dict[str, str] = {}

    @property
    def found(self) -> Mapping[str, str]:
        """Name → day as `2026-12-31`, empty if the service names none."""
        with self._lock:
            return dict(self._found)

    def note(self, response: httpx.Response) -> None:
        """Note the announcements of a response, whatever its status."""
        if HEADER not in response.headers:
            return
        lines, endpoint = response.headers.get_list(HEADER), _endpoint(response.request)
        with self._lock:
            if (known := f"{endpoint} {lines}") in self._read or len(self._read) > MAX_NAMES:
                return
            self._read.add(known)
            for name, day in announced_names(lines, endpoint).items():
                if name in self._found or len(self._found) < MAX_NAMES:
                    self._found[name] = day or self._found.get(name, "")


def announced_names(lines: Sequence[str], endpoint: str) -> dict[str, str]:
    """Returns name → day of the header lines of one response to `endpoint`, such as `GET /publications`. Never raises."""
    text = _DAY.sub(r"\1", _SECONDS.sub(_day_of_seconds, _HTTP_DATE.sub(_day_of_date, ", ".join(lines)[:10_000])))
    found: dict[str, str] = {}
    common = ""
    for item in _ITEM.findall(text)[:MAX_NAMES]:
        day = _DAY.search(item)
        name = _ABOUT_DAY.sub("", " " + _DAY.sub("", item).strip(" \"'()=;:")).strip(" \"'()=;:")
        if _ONLY_DAY.fullmatch(name):
            common = day[1] if day else common
            continue
        found[endpoint if name.lower() in _YES else outside_text(name, _LENGTH)] = day[1] if day else ""
    if common and not found:
        return {endpoint: common}
    return {name: day or common for name, day in found.items()}


def _day_of_date(found: re.Match[str]) -> str:
    moment = http_date(found[0] if ":" in found[0] else f"{found[0]} 00:00:00 GMT")
    return found[0] if moment is None else f"{moment:%Y-%m-%d}"


def _day_of_seconds(found: re.Match[str]) -> str:
    return f"{datetime.fromtimestamp(int(found[1]), UTC):%Y-%m-%d}"


def _endpoint(request: httpx.Request) -> str:
    """Returns the endpoint of a request without ids: `GET /assets/:id`."""
    path = request.url.path.partition("/api/")[2].partition("/")[2]
    return outside_text(f"{request.method} /{re.sub(r'(?<=/)[0-9]+(?=/|$)', ':id', path)}", _LENGTH)
