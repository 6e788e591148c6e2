"""API version 3: typed identifiers, OAuth 2.1, scopes. A preview."""

from sandbox.both_versions import assets, users
from sandbox.documentation import swagger_endpoint
from sandbox.endpoints import Version
from sandbox.v3 import other_resources, sign_in
from sandbox.v3.publications import PUBLICATIONS
from sandbox.v3.schemas import SCHEMAS as PUBLICATION_SCHEMAS

SCHEMAS = {**PUBLICATION_SCHEMAS, **users.SCHEMAS, **other_resources.SCHEMAS}
RESOURCES = {resource.key: resource for resource in (PUBLICATIONS, users.USERS, *other_resources.RESOURCES)}

V3 = Version(
    name="v3",
    title="Library service, API version 3",
    doc="Preview; may change before the stable release. Identifiers are a typed list.",
    endpoints=(
        *PUBLICATIONS.endpoints(),
        *assets.ENDPOINTS,
        *users.V3_ENDPOINTS,
        *other_resources.ENDPOINTS,
        swagger_endpoint.ENDPOINT,
    ),
    schemas=SCHEMAS,
    described=SCHEMAS,
    sign_in=sign_in.sign_in,
    security=sign_in.SECURITY,
)
