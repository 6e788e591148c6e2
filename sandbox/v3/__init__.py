"""API version 3: typed identifiers, OAuth 2.1, scopes. A preview."""

from sandbox.both_versions import assets
from sandbox.documentation import swagger_endpoint
from sandbox.endpoints import Version
from sandbox.v3 import other_resources, publications, sign_in, users
from sandbox.v3.schemas import SCHEMAS

V3 = Version(
    name="v3",
    title="Library service, API version 3",
    doc="Preview; may change before the stable release. Identifiers are a typed list.",
    endpoints=(
        *publications.ENDPOINTS,
        *assets.ENDPOINTS,
        *users.ENDPOINTS,
        *other_resources.ENDPOINTS,
        *swagger_endpoint.ENDPOINTS,
    ),
    schemas={**SCHEMAS, **users.SCHEMAS, **other_resources.SCHEMAS},
    sign_in=sign_in.sign_in,
    security=sign_in.SECURITY,
)
