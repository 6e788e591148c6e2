"""API version 3: typed identifiers, OAuth 2.1, scopes. A preview."""

from sandbox.both_versions import assets
from sandbox.both_versions.publications import publication_endpoints
from sandbox.documentation import swagger_endpoint
from sandbox.endpoints import Version
from sandbox.v3 import other_resources, sign_in, users
from sandbox.v3.draft_changes import draft_change
from sandbox.v3.render import publication_record
from sandbox.v3.resources import Resource
from sandbox.v3.schemas import SCHEMAS as PUBLICATION_SCHEMAS

SCHEMAS = {**PUBLICATION_SCHEMAS, **users.SCHEMAS, **other_resources.SCHEMAS}
RESOURCES = {
    each.key: each
    for each in (
        Resource(key="publications", name="Publication", changed="Update"),
        users.USERS,
        *other_resources.RESOURCES,
    )
}

_PUBLICATIONS = publication_endpoints(
    publication_record,
    draft_change,
    deprecated=False,
    docs=(
        (
            "File content in `assets` or `assets_attributes` needs the scope `assets:write` too. "
            "404 for an unknown contributor, category, organization or uploaded file."
        ),
        "A field of the payload replaces the stored one, a list as a whole; files are added. The rest is as in a create.",
    ),
)

V3 = Version(
    name="v3",
    title="Library service, API version 3",
    doc="Preview; may change before the stable release. Identifiers are a typed list.",
    endpoints=(
        *_PUBLICATIONS,
        *assets.ENDPOINTS,
        *users.ENDPOINTS,
        *other_resources.ENDPOINTS,
        *swagger_endpoint.ENDPOINTS,
    ),
    schemas=SCHEMAS,
    described=SCHEMAS,
    sign_in=sign_in.sign_in,
    security=sign_in.SECURITY,
)
