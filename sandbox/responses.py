"""How answers are written: JSON in UTF-8, errors with the body of the document."""

from __future__ import annotations

import json
from collections.abc import Mapping

from werkzeug.wrappers import Response

from sandbox.errors import ApiError
from sandbox.settings import Variations


def json_response(content: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer, written compactly and with letters as they are."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(body, status=status, headers=headers, content_type="application/json; charset=utf-8")


def created(record: Mapping[str, object], variations: Variations) -> Response:
    """What was created: 200, as the document's table of statuses has it; 201 where the service is varied so."""
    return json_response(record, status=201 if variations.created_status == "created" else 200)


def deleted(variations: Variations) -> Response:
    """After a deletion: an empty object; no body at all, with 200 or 204, where the service is varied so."""
    if variations.deleted_answer == "object":
        return json_response({})
    return Response(status=200 if variations.deleted_answer == "empty" else 204)


def without_nulls(response: Response) -> Response:
    """The same answer with every field left out that is null."""
    if response.mimetype == "application/json":
        fuller = json_response(_without_null_fields(json.loads(response.get_data())))
        response.set_data(fuller.get_data())
    return response


def _without_null_fields(node: object) -> object:
    if isinstance(node, dict):
        return {name: _without_null_fields(value) for name, value in node.items() if value is not None}
    return [_without_null_fields(each) for each in node] if isinstance(node, list) else node


def error_response(error: ApiError) -> Response:
    """``{"error": {"code", "message"}}`` with the error's status and headers."""
    return json_response(error.body(), status=error.status, headers=error.headers)
