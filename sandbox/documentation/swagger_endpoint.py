"""The endpoint of the machine-readable description, which needs no sign-in."""

from __future__ import annotations

from werkzeug.wrappers import Response

from sandbox.documentation.openapi import swagger_yaml
from sandbox.endpoints import Call, Endpoint, SuccessResponse
from sandbox.errors import route_not_found

_MEDIA_TYPE = "application/yaml"


def describe(call: Call) -> Response:
    """Returns ``swagger.yaml``; 404 where a version has none."""
    if call.version.described is None:
        raise route_not_found(call.request.path)
    return Response(swagger_yaml(call.version, call.base_url, call.settings.variations), content_type=_MEDIA_TYPE)


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/swagger.yaml",
        summary="This description",
        handler=describe,
        success=SuccessResponse("An OpenAPI document", media_type=_MEDIA_TYPE),
        public=True,
    ),
)
