"""Limits that the service sets for every client: 60 requests a minute, 50 records a page."""

from __future__ import annotations

REQUESTS_PER_MINUTE = 60
"""Requests a minute that the service grants to one library (service.md#rate)."""

PER_PAGE = 50
"""Records on one page of a list at most (service.md#lists)."""

DEFAULT_PER_PAGE = 25
"""Records on one page of a list if the request names no `per_page` (service.md#lists)."""
