"""Reads `X-API-Deprecation`: the names that the service announces as deprecated, and the day if it names one (service.md#deprecation).

The form of the header is an assumption (service.md#deprecation): names separated by commas, each up to its `;`, with the day behind that,
as `import_state; sunset=2026-12-31`. Any other text counts as a name, shortened, so that nothing that was announced is lost.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence

import httpx

from pipelines.service.redaction import outside_text

HEADER = "x-api-deprecation"

MAX_NAMES = 100
"""Names that one run keeps at most (I13)."""

_LENGTH = 80
"""Characters of a name that are kept."""

_ITEM = re.compile(r'(?:[^",]++|"[^"]*+"?)++')
_DAY = re.compile(r"\b\d{4}-\d\d-\d\d(?!\d)", re.ASCII)
_YES = frozenset({"true", "yes", "1", "?1"})
"""Values that say that the requested address itself is deprecated."""


class Announcements:
    """Collects what the responses of one client announce. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._days: dict[str, str] = {}

    @property
    def days(self) -> Mapping[str, str]:
        """Name → day as `2026-12-31`, empty if the service names none."""
        with self._lock:
            return dict(self._days)

    def note(self, response: httpx.Response) -> None:
        """Note the announcements of a response, whatever its status."""
        if HEADER not in response.headers:
            return
        announced = announced_names(response.headers.get_list(HEADER), _endpoint(response.request))
        with self._lock:
            for name, day in announced.items():
                if name in self._days or len(self._days) < MAX_NAMES:
                    self._days[name] = day or self._days.get(name, "")


def announced_names(lines: Sequence[str], endpoint: str) -> dict[str, str]:
    """Returns name → day of the header lines of one response to `endpoint`, such as `GET /publications`. Never raises."""
    names = {}
    for item in _ITEM.findall(", ".join(lines)[:10_000])[:MAX_NAMES]:
        name, _, parameters = item.partition(";")
        if name := name.strip():
            day = _DAY.search(parameters)
            names[endpoint if name.lower() in _YES else outside_text(name, _LENGTH)] = day[0] if day else ""
    return names


def _endpoint(request: httpx.Request) -> str:
    """Returns the endpoint of a request without ids: `GET /assets/:id`."""
    path = request.url.path.partition("/api/")[2].partition("/")[2]
    return outside_text(f"{request.method} /{re.sub(r'(?<=/)[0-9]+(?=/|$)', ':id', path)}", _LENGTH)
