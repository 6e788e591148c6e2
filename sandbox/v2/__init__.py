"""API version 2 (service.md#v2): flat identifiers, HTTP Basic or a session cookie. Deprecated, shut down at the end of 2026."""

from sandbox.both_versions import assets
from sandbox.documentation import swagger_endpoint
from sandbox.endpoints import Version
from sandbox.v2 import publications, sign_in, users
from sandbox.v2.schemas import SCHEMAS

V2 = Version(
    name="v2",
    title="Library service, API version 2",
    doc="Deprecated; shut down at the end of 2026. Identifiers are flat fields.",
    endpoints=(*publications.ENDPOINTS, *assets.ENDPOINTS, *users.ENDPOINTS, *swagger_endpoint.ENDPOINTS),
    schemas={**SCHEMAS, **users.SCHEMAS},
    sign_in=sign_in.sign_in,
    security=sign_in.SECURITY,
)
