"""API version 2 (service.md#v2): flat identifiers, HTTP Basic or a session cookie. Deprecated, shut down at the end of 2026."""

from sandbox.both_versions import assets
from sandbox.both_versions.publications import publication_endpoints
from sandbox.documentation import swagger_endpoint
from sandbox.endpoints import Version
from sandbox.v2 import sign_in, users
from sandbox.v2.draft_changes import draft_change
from sandbox.v2.render import publication_record
from sandbox.v2.schemas import SCHEMAS as PUBLICATION_SCHEMAS

SCHEMAS = {**PUBLICATION_SCHEMAS, **users.SCHEMAS}

_PUBLICATIONS = publication_endpoints(
    publication_record,
    draft_change,
    deprecated=True,
    docs=(
        "404 for an unknown contributor or uploaded file; an unknown category or organization is left out.",
        "Adds entries of authors, categories and assets, and removes those with `_destroy`. The rest is as in a create.",
    ),
)

V2 = Version(
    name="v2",
    title="Library service, API version 2",
    doc="Deprecated; shut down at the end of 2026. Identifiers are flat fields.",
    endpoints=(*_PUBLICATIONS, *assets.ENDPOINTS, *users.ENDPOINTS, *swagger_endpoint.ENDPOINTS),
    schemas=SCHEMAS,
    described=SCHEMAS,
    sign_in=sign_in.sign_in,
    security=sign_in.SECURITY,
)
