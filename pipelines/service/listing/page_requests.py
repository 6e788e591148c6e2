"""Requests single pages of a list, from the first of its endpoints that the service has."""

from __future__ import annotations

from collections.abc import Sequence

import httpx
import msgspec

from pipelines.errors import AccessDeniedError, ProtocolError, RefusedError
from pipelines.service.client import LibraryClient
from pipelines.service.listing.page_checkpoint import SavedPage
from pipelines.service.redaction import outside_text
from pipelines.service_limits import PER_PAGE


class PageRequests:
    """Requests the pages of one list. `endpoints`: the list's addresses, the best first (service.md#lists)."""

    def __init__(self, client: LibraryClient, endpoints: Sequence[str]) -> None:
        self._client = client
        self._endpoints = endpoints

    def first(self) -> tuple[str, SavedPage]:
        """Return the endpoint and the first page. Raises the error of the last endpoint if the service has none of them."""
        missing: Exception | None = None
        for endpoint in self._endpoints:
            url = httpx.URL(f"{self._client.api_url}/{endpoint}", params={"per_page": PER_PAGE, "page": 1})
            try:
                return endpoint, self.get(url)
            except (RefusedError, ProtocolError, AccessDeniedError) as error:
                missing = error  # missing, no listing, or not for this account: try the next endpoint
        assert missing is not None  # noqa: S101  endpoints is never empty
        raise missing

    def get(self, url: httpx.URL) -> SavedPage:
        """Return one page. Raises `ProtocolError` if the response is no page of a list, and the errors of `LibraryClient.get`."""
        response = self._client.get(url)
        try:
            return SavedPage.read(response, url)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise ProtocolError(
                f"GET {outside_text(url)} answered something that is not a listing ({outside_text(error)}); expected an array, or an "
                "object with `records` or one other array of objects."
            ) from None

    def get_if_there(self, url: httpx.URL) -> SavedPage | None:
        """Return one page; `None` if it does not exist any more."""
        try:
            return self.get(url)
        except RefusedError as error:
            if error.status == httpx.codes.NOT_FOUND:
                return None
            raise
