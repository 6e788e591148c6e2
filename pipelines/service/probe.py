"""Asks a library a few questions about its behaviour, not about its content; each question is asked once.

Probes use the same client as everything else: they cost the same budget (I1) and carry the sign-in nowhere else (I2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import httpx

from pipelines.errors import BookferryError, ProtocolError, TemporaryError
from pipelines.records.values import NOT_JSON, decode_json
from pipelines.service.client import LibraryClient
from pipelines.service.clock import Clock
from pipelines.service.http.envelope import split_records
from pipelines.service.http.paging import PagingHeaders, read_paging_headers
from pipelines.service.http.responses import check_response
from pipelines.service.http.retry_after import http_date

MAX_FAILURES = 2
"""Temporary failures after which nothing more is asked."""


@dataclass(frozen=True)
class ProbeResponse:
    """The response to one question, whatever its status."""

    response: httpx.Response
    asked_at: datetime
    answered_at: datetime

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.response.status_code

    @property
    def address(self) -> str:
        """The requested address."""
        return str(self.response.request.url)

    @property
    def content(self) -> bytes:
        """The body."""
        return self.response.content

    def header(self, name: str) -> str:
        """Return a header's value; empty if it was not sent."""
        return str(self.response.headers.get(name, ""))

    @cached_property
    def error(self) -> BookferryError | None:
        """The error that a backup would raise for this response; `None` for a 200 that could be a page of records."""
        try:
            check_response(self.response)
        except BookferryError as error:
            return error
        return None

    @cached_property
    def records(self) -> list[dict[str, Any]] | None:
        """The records of the page that are objects; `None` if this is no page of records."""
        if self.error is not None:
            return None
        try:
            decoded = [decode_json(bytes(record)) for record in split_records(self.content)]
        except NOT_JSON:
            return None
        return [record for record in decoded if isinstance(record, dict)]

    @cached_property
    def paging(self) -> PagingHeaders | None:
        """The paging headers; `None` if the next page's address cannot be understood."""
        try:
            return read_paging_headers(self.response, self.response.request.url, len(self.records or []))
        except ProtocolError:
            return None

    @property
    def next_page(self) -> str | None:
        """The address of the next page, if Link names one."""
        named = self.paging.next if self.paging is not None else None
        return None if named is None else str(named)

    @cached_property
    def clock_difference(self) -> timedelta | None:
        """How far the service's clock (its Date header) is ahead of ours; `None` without a Date header.

        Date has whole seconds, so half a second is added; a response from a cache says its Age.
        """
        sent = http_date(self.header("date"))
        if sent is None:
            return None
        age = int(digits[0]) if (digits := re.match(r"[0-9]{1,9}$", self.header("age"))) else 0
        return sent + timedelta(seconds=0.5 + age) - (self.asked_at + (self.answered_at - self.asked_at) / 2)


class Probe:
    """Asks one library, and gives up after `MAX_FAILURES` failures: a person waits, and so do other runs."""

    def __init__(self, client: LibraryClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._origin = _origin(client.api_url)
        self.failures: list[BookferryError] = []

    @property
    def base_url(self) -> str:
        """The tenant's base_url."""
        return self._client.api_url.rpartition("/api/")[0]

    @property
    def api_url(self) -> str:
        """Root of the tenant's own version of the API."""
        return self._client.api_url

    def ask_at(self, address: str, *, signed_in: bool = True, **params: Any) -> ProbeResponse | None:
        """Return the response to a GET of an address on the library's own origin; `None` if there is none.

        An address on another origin is not requested.
        """
        if len(self.failures) >= MAX_FAILURES or _origin(address) != self._origin:
            return None
        asked_at = self._clock.now()
        try:
            response = self._client.ask(address, params or None, signed_in=signed_in)
        except TemporaryError as error:
            self.failures += [error] * (MAX_FAILURES if "429" in str(error) else 1)
            return None
        except ProtocolError as error:
            self.failures.append(error)
            return None
        return ProbeResponse(response, asked_at, self._clock.now())


def _origin(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    return parts.scheme, parts.netloc
