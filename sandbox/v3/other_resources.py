"""Hard copies, locations, authorities, collections and tasks (service.md#other-resources). Their fields are assumptions."""

from __future__ import annotations

from datetime import UTC, datetime

from werkzeug.wrappers import Response

from sandbox.both_versions.resources import MERGE, Resource
from sandbox.both_versions.schemas import DATE_OR_NULL, ID, TEXT_OR_NULL, array
from sandbox.endpoints import TEXT, Call, Endpoint, Schema

_NAME: Schema = {"type": "string", "minLength": 1}
_ID_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 1}
_KINDS = ("person", "corporate", "subject")
_STATUSES = ("available", "on_loan", "missing")

_HARD_COPIES = Resource(
    key="hard_copies",
    name="HardCopy",
    noun="hard copy",
    path="/hard_copies",
    actions=("list", "create", "change", "delete"),
    fields={
        "publication_id": ID,
        "location_id": _ID_OR_NULL,
        "barcode": TEXT_OR_NULL,
        "call_number": TEXT_OR_NULL,
        "status": {"type": "string", "enum": list(_STATUSES)},
        "acquired_on": DATE_OR_NULL,
        "note": TEXT_OR_NULL,
    },
    required=("publication_id",),
    defaults={"status": _STATUSES[0]},
    filters={name: name for name in ("publication_id", "location_id", "barcode", "status")},
)

_LOCATIONS = Resource(
    key="locations",
    name="Location",
    noun="location",
    path="/hard_copies/locations",
    actions=("list", "change", "merge"),
    fields={"name": _NAME, "note": TEXT_OR_NULL},
    required=("name",),
    defaults={"name": "Unnamed"},
    filters={"name": "name"},
    docs={"merge": "Its hard copies move to the other location."},
)

_AUTHORITIES = Resource(
    key="authorities",
    name="Authority",
    noun="authority",
    path="/authorities",
    actions=("list", "create", "change", "merge"),
    fields={"name": _NAME, "kind": {"type": "string", "enum": list(_KINDS)}, "variants": array(TEXT)},
    required=("name", "kind"),
    defaults={"name": "Unnamed", "kind": _KINDS[0], "variants": []},
    filters={"name": "name", "kind": "kind"},
    docs={
        "merge": "Its name and variants become variants of the other authority. Publications stay unchanged.",
    },
)

_COLLECTIONS = Resource(
    key="collections",
    name="Collection",
    noun="collection",
    path="/collections",
    actions=("list", "create", "change", "delete"),
    fields={"name": _NAME, "description": TEXT_OR_NULL, "publication_ids": array(ID)},
    required=("name",),
    defaults={"name": "Unnamed", "publication_ids": []},
    filters={"name": "name", "publication_id": "publication_ids"},
)

_TASKS = Resource(
    key="tasks",
    name="Task",
    noun="task",
    path="/tasks",
    actions=("list", "create", "change"),
    read="tasks:read",
    write="tasks:write",
    fields={
        "title": _NAME,
        "description": TEXT_OR_NULL,
        "publication_id": _ID_OR_NULL,
        "assignee_id": _ID_OR_NULL,
        "due_on": DATE_OR_NULL,
    },
    required=("title",),
    defaults={"title": "Unnamed"},
    read_only={"completed_at": {"type": ["string", "null"], "format": "date-time"}},
    filters={"assignee_id": "assignee_id", "publication_id": "publication_id", "due_on": "due_on"},
)


def complete_task(call: Call) -> Response:
    """Stores when a task was completed; a second call changes nothing."""
    tasks = _TASKS.records(call)
    task = tasks.get(call.number)
    if task["completed_at"] is None:
        now = datetime.fromtimestamp(int(call.tenant.clock.now()), UTC)
        task = tasks.change(task["id"], {"completed_at": f"{now:%Y-%m-%dT%H:%M:%SZ}"})
    return _TASKS.answer(task, call)


_COMPLETION = Endpoint(
    "PATCH",
    "/tasks/{id}/complete",
    "Complete a task",
    complete_task,
    answer="Task",
    scope="tasks:write",
    resource="tasks",
)

RESOURCES = (_HARD_COPIES, _LOCATIONS, _AUTHORITIES, _COLLECTIONS, _TASKS)

ENDPOINTS = (*(endpoint for resource in RESOURCES for endpoint in resource.endpoints()), _COMPLETION)

SCHEMAS = MERGE | {name: schema for resource in RESOURCES for name, schema in resource.schemas().items()}
