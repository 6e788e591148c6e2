"""Responses: JSON in UTF-8."""

from __future__ import annotations

import json
from collections.abc import Mapping

from werkzeug.wrappers import Response


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
    return [_without_null_fields(entry) for entry in node] if isinstance(node, list) else node
