"""What a refusal says about the form of a request."""

from __future__ import annotations

import re
from http import HTTPStatus

from pipelines.errors import RefusedError


def refuses_method(refusal: RefusedError) -> bool:
    """Whether a refusal is about the method; a 404 with another code says that there is no such address (A12)."""
    missing = refusal.status == HTTPStatus.NOT_FOUND and refusal.code != "RecordNotFound"
    return missing or refusal.status in {HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED}


def words_of(refusal: RefusedError) -> set[str]:
    """The words of its code and message, in small letters."""
    return {*re.findall(r"[a-z0-9_]+", f"{refusal.code} {refusal.detail}".lower())}
