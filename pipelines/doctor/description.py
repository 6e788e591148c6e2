"""Compares a library's own description, `swagger.yaml`, with the operations that Bookferry uses and with the documented ones."""

from __future__ import annotations

from typing import Any

from pipelines.doctor.findings import CheckResult, note, ok, warning
from pipelines.publication_fields import IDENTIFIER_FIELDS, IDENTIFIER_LIST, PUBLICATION_KEYS, REFERENCES
from pipelines.service.redaction import outside_text
from pipelines.shapes.model import Description

MAX_NAMES = 8
"""Most names in one message; --json has all of them."""

_COMMON = {
    "GET /publications": ("page", "per_page"),
    "GET /publications/{}": (),
}

USED: dict[str, dict[str, tuple[str, ...]]] = {
    "v2": _COMMON,
    "v3": {
        **_COMMON,
        "GET /assets/{}": (),
        **{f"GET /{name}": () for name in ("users", "hard_copies", "hard_copies/locations", "collections", "authorities", "tasks")},
        "GET /users/me": (),
    },
}  # fmt: skip
"""Version → operation of a backup → the query parameters that it sends."""

_WRITES = (
    "POST /publications", "PATCH /publications/{}", "DELETE /publications/{}", "GET /publications/cover/presign",
    "GET /assets/presign", "POST /assets", "GET /assets/{}", "PATCH /assets/{}", "DELETE /assets/{}", "GET /publications/all",
    "POST /users", "DELETE /users/{}",
)  # fmt: skip

DOCUMENTED = {
    "v2": {*USED["v2"], *_WRITES, "PATCH /users/{}/roles"},
    "v3": {
        *USED["v3"], *_WRITES, "GET /users/{}", "PATCH /users/{}", "GET /users/avatar/presign",
        "POST /hard_copies", "PATCH /hard_copies/{}", "DELETE /hard_copies/{}", "PATCH /hard_copies/locations/{}",
        "PATCH /hard_copies/locations/{}/merge", "POST /authorities", "PATCH /authorities/{}", "PATCH /authorities/{}/merge",
        "POST /collections", "PATCH /collections/{}", "DELETE /collections/{}", "POST /tasks", "PATCH /tasks/{}",
        "PATCH /tasks/{}/complete",
    },
}  # fmt: skip
"""The documented operations; some of their paths are assumed (A6)."""

_SHARED = PUBLICATION_KEYS - set(REFERENCES)
FIELDS = {"v2": _SHARED | set(IDENTIFIER_FIELDS), "v3": _SHARED | {IDENTIFIER_LIST}}
"""Fields of a publication that every description should have."""

OPTIONAL_FIELDS = {"import_state", *REFERENCES}
"""Fields that a description may lack."""


def compare(api: str, described: Description) -> CheckResult:
    """Differences between the service's description and the operations that Bookferry uses or knows."""
    if described.problem:
        return note(f"nothing to compare with: {described.problem}", found=False)
    operations = described.operations
    fields = {*described.resources["publications"].record} if "publications" in described.resources else set[str]()
    missing = sorted(set(USED[api]) - set(operations))
    unsent = sorted(
        f"{name}: {parameter}"
        for name, used in USED[api].items()
        for parameter in used
        if operations.get(name) and parameter not in operations[name]
    )
    new = sorted(set(operations) - DOCUMENTED[api] - {"GET /swagger.yaml"})
    facts = {
        "found": True,
        "missing": missing,
        "missing_parameters": unsent,
        "missing_fields": sorted(FIELDS[api] - fields) if fields else [],
        "new": new,
        "new_fields": sorted(fields - FIELDS[api] - OPTIONAL_FIELDS),
        "not_followed": described.notes,
    }
    return _result(facts, len(operations))


def _result(facts: dict[str, Any], operations: int) -> CheckResult:
    labels = {
        "missing": "missing operations that a backup uses",
        "missing_parameters": "missing parameters",
        "missing_fields": "missing fields of a publication",
        "new": "unknown operations",
        "new_fields": "fields of a publication that backups keep as residue",
        "not_followed": "not read",
    }
    differences = [f"{label}: {_name_list(facts[key])}" for key, label in labels.items() if facts[key]]
    message = "; ".join(differences) or "has everything that a backup uses, and nothing unknown"
    if any(facts[key] for key in ("missing", "missing_parameters", "missing_fields")):
        return warning(
            message,
            "Nothing is lost: the raw records keep every field. Compare the service's swagger.yaml with docs/assumptions.md.",
            **facts,
        )
    return (note if differences else ok)(f"{operations} operations; {message}", **facts)


def _name_list(names: list[str]) -> str:
    listed = outside_text(", ".join(names[:MAX_NAMES]).replace("{}", ":id"))
    return f"{listed} and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else listed
