"""API version 2 (service.md#v2): flat identifiers, HTTP Basic or a session cookie. Deprecated, shut down at the end of 2026."""

from sandbox.both_versions import assets, users
from sandbox.documentation import swagger_endpoint
from sandbox.endpoints import Version
from sandbox.v2 import sign_in
from sandbox.v2.publications import PUBLICATIONS
from sandbox.v2.schemas import SCHEMAS as PUBLICATION_SCHEMAS

SCHEMAS = {**PUBLICATION_SCHEMAS, **users.SCHEMAS}

V2 = Version(
    name="v2",
    title="Library service, API version 2",
    doc="Deprecated; shut down at the end of 2026. Identifiers are flat fields.",
    endpoints=(*PUBLICATIONS.endpoints(), *assets.ENDPOINTS, *users.V2_ENDPOINTS, swagger_endpoint.ENDPOINT),
    schemas=SCHEMAS,
    described=SCHEMAS,
    sign_in=sign_in.sign_in,
    security=sign_in.SECURITY,
)
