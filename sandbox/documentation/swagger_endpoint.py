"""The endpoint of the machine-readable description, which needs no sign-in."""

from __future__ import annotations

from werkzeug.wrappers import Response

from sandbox.documentation.openapi import swagger_yaml
from sandbox.endpoints import Call, Endpoint
from sandbox.errors import route_not_found

_MEDIA_TYPE = "application/yaml"


def describe(call: Call) -> Response:
    """Returns ``swagger.yaml``; 404 where a version has none."""
    if call.version.described is None:
        raise route_not_found(call.request.path)
    return Response(swagger_yaml(call.version, call.base_url), content_type=_MEDIA_TYPE)


ENDPOINT = Endpoint(
    "GET", "/swagger.yaml", "This description", describe, answer="", media_type=_MEDIA_TYPE, public=True
)
