"""Responses: JSON in UTF-8, and errors with the error body of service.md#errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus

from werkzeug.wrappers import Response

from sandbox.errors import ApiError


def json_response(
    content: object, *, status: int = 200, headers: Mapping[str, str | list[str]] | None = None
) -> Response:
    """Returns a compact JSON response; letters are not escaped."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(body, status=status, headers=headers, content_type="application/json; charset=utf-8")


def without_nulls(response: Response) -> Response:
    """Removes every field that is null from a response."""
    if response.mimetype == "application/json":
        reduced = json_response(_without_null_fields(json.loads(response.get_data())))
        response.set_data(reduced.get_data())
    return response


def _without_null_fields(node: object) -> object:
    if isinstance(node, dict):
        return {name: _without_null_fields(value) for name, value in node.items() if value is not None}
    return [_without_null_fields(each) for each in node] if isinstance(node, list) else node


def ended_response(status: int, base_url: str) -> Response:
    """Returns the response of a version that has been shut down. Its form is an assumption (service.md#shutdown)."""
    if status == HTTPStatus.OK:
        page = "<!DOCTYPE html><title>Gone</title><p>This version of the API has been shut down."
        return Response(page, content_type="text/html; charset=utf-8")
    redirect = {"Location": f"{base_url}/api"} if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST else {}
    return error_response(ApiError(status, "VersionEnded", "This version of the API has been shut down", redirect))


def error_response(error: ApiError) -> Response:
    """Returns the response of an error: ``{"error": {"code", "message"}}`` with its status and headers."""
    return json_response(error.body(), status=error.status, headers=error.headers)
