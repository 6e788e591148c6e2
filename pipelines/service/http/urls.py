"""Addresses from outside, understood before anything is sent."""

from __future__ import annotations

import httpx


def url_of(address: httpx.URL | str) -> httpx.URL:
    """Returns an address. Raises `httpx.InvalidURL`, also for a host that cannot be decoded, which httpx notices only when it sends."""
    try:
        url = httpx.URL(address)
        _ = url.host
    except ValueError as error:
        raise httpx.InvalidURL(str(error)) from None
    return url
