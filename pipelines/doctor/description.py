"""Compares the service's own description, `swagger.yaml`, with the operations that Bookferry uses and with the documented ones.

A description may be OpenAPI 3 or Swagger 2. It comes from outside: reading has limits, and any part may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

import yaml

from pipelines.doctor.findings import CheckResult, note, ok, warning
from pipelines.doctor.service import OTHER_VERSION
from pipelines.publication_fields import IDENTIFIER_FIELDS, IDENTIFIER_LIST, PUBLICATION_KEYS, REFERENCES
from pipelines.service.probe import Probe, ProbeResponse
from pipelines.service.redaction import outside_text

MAX_BYTES = 4 * 1024 * 1024
"""The most bytes of a description; the sandbox's has 60 kB."""

MAX_DEPTH = 40
"""The most references that are followed in a chain."""

MAX_NAMES = 8
"""Names in one message; --json has them all."""

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
"""Version → operation of a backup → its query parameters."""

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
"""Version → documented operations, with assumed paths where the documentation shows none (A6)."""

_SHARED = PUBLICATION_KEYS - set(REFERENCES)
FIELDS = {"v2": _SHARED | set(IDENTIFIER_FIELDS), "v3": _SHARED | {IDENTIFIER_LIST}}
"""Fields of a publication that every description should have."""

OPTIONAL_FIELDS = {"import_state", *REFERENCES}
"""Fields that a description may lack."""

_METHODS = frozenset({"get", "post", "put", "patch", "delete"})
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def fetch(probe: Probe, api: str) -> ProbeResponse | None:
    """The description of a version: at its own address, else at the one that the page at /api links to. Needs no sign-in."""
    answer = probe.ask("swagger.yaml", signed_in=False)
    if answer is not None and _parsed(answer) is not None:
        return answer
    page = probe.ask_at(f"{probe.base_url}/api", signed_in=False)
    for address in _linked(page, api) if page is not None else ():
        return probe.ask_at(address, signed_in=False)
    return answer


def _linked(page: ProbeResponse, api: str) -> Iterator[str]:
    """Addresses of a description on a web page, those that name the version first."""
    text = page.content[:MAX_BYTES].decode(errors="replace")
    found = [
        urljoin(page.address, link)
        for link in re.findall(r"[\"']([^\"'<>\s]{1,500}swagger[^\"'<>\s]{0,200}\.ya?ml)[\"']", text)
    ]
    other = OTHER_VERSION[api]
    yield from sorted((one for one in found if f"/{other}/" not in one), key=lambda one: f"/{api}/" not in one)


def compare(api: str, answer: ProbeResponse | None) -> CheckResult:
    """Compare the description with the operations and fields that Bookferry uses and knows."""
    described = _parsed(answer) if answer is not None else None
    if described is None:
        status = f" ({answer.status})" if answer is not None else ""
        return note(
            "description",
            f"the service offers no swagger.yaml that can be read{status}: nothing to compare",
            found=False,
        )
    operations = _operations(described)
    fields = _publication_fields(described, operations)
    missing = sorted(set(USED[api]) - set(operations))
    unsent = sorted(
        f"{name}: {parameter}"
        for name, used in USED[api].items()
        for parameter in used
        if name in operations and operations[name] and parameter not in operations[name]
    )
    new = sorted(set(operations) - DOCUMENTED[api] - {"GET /swagger.yaml"})
    facts = {
        "found": True,
        "missing": missing,
        "missing_parameters": unsent,
        "missing_fields": sorted(FIELDS[api] - fields) if fields else [],
        "new": new,
        "new_fields": sorted(fields - FIELDS[api] - OPTIONAL_FIELDS),
    }
    return _result(facts, len(operations))


def _result(facts: dict[str, Any], operations: int) -> CheckResult:
    labels = {
        "missing": "not in it, though a backup uses it",
        "missing_parameters": "parameters that are not in it",
        "missing_fields": "fields of a publication that are not in it",
        "new": "operations that we do not know",
        "new_fields": "fields of a publication that are stored as residue",
    }
    parts = [f"{label}: {_name_list(facts[key])}" for key, label in labels.items() if facts[key]]
    message = "; ".join(parts) or "has everything that a backup uses, and nothing that we do not know"
    if any(facts[key] for key in ("missing", "missing_parameters", "missing_fields")):
        return warning(
            "description",
            message,
            "Nothing is lost by it: the raw records keep every field. Compare the service's swagger.yaml with docs/assumptions.md.",
            **facts,
        )
    return (note if parts else ok)("description", f"{operations} operations; {message}", **facts)


def _name_list(names: list[str]) -> str:
    text = outside_text(", ".join(names[:MAX_NAMES]).replace("{}", ":id"))
    return f"{text} and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else text


def _parsed(answer: ProbeResponse) -> dict[str, Any] | None:
    """The description, as YAML or JSON; `None` if it is neither or has no paths."""
    if answer.status != 200 or len(answer.content) > MAX_BYTES:  # noqa: PLR2004
        return None
    try:
        read = yaml.load(answer.content, Loader=_Loader)  # noqa: S506  a safe loader, libyaml's where it was built in
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) and isinstance(read.get("paths"), dict) else None


def _operations(described: dict[str, Any]) -> dict[str, set[str]]:
    """`GET /publications/{}` → its query parameters, whatever prefix the description has for the version."""
    prefix = _prefix(described)
    found: dict[str, set[str]] = {}
    for path, item in described["paths"].items():
        if not isinstance(item, dict):
            continue
        short = "/" + re.sub(r"\{[^}]*\}|:\w+", "{}", str(path)).removeprefix(prefix).strip("/")
        for method, operation in item.items():
            if str(method).lower() in _METHODS and isinstance(operation, dict):
                parameters = [*_list(item.get("parameters")), *_list(operation.get("parameters"))]
                found[f"{str(method).upper()} {short}"] = {
                    str(one.get("name"))
                    for one in (_resolved(described, two) for two in parameters)
                    if one.get("in") == "query"
                }
    return found


def _prefix(described: dict[str, Any]) -> str:
    """The common prefix of all paths: /api/v3, unless the server's address has it already."""
    paths = [str(path) for path in described["paths"]]
    found = re.match(r"(?:/.*)?/(?:api/)?v[23](?=/)", paths[0]) if paths else None
    return found[0] if found and all(path.startswith(found[0]) for path in paths) else ""


def _publication_fields(described: dict[str, Any], operations: dict[str, set[str]]) -> set[str]:
    """The fields of a publication, from the response schema of one or of the list; empty if there is none."""
    for wanted in ("GET /publications/{}", "GET /publications"):
        if wanted not in operations:
            continue
        for schema in _answered(described, wanted):
            record = _record(described, schema)
            if record:
                return record
    return set()


def _answered(described: dict[str, Any], wanted: str) -> Iterator[dict[str, Any]]:
    """The schemas of an operation's response 200."""
    prefix = _prefix(described)
    for path, item in described["paths"].items():
        short = "/" + re.sub(r"\{[^}]*\}|:\w+", "{}", str(path)).removeprefix(prefix).strip("/")
        operation = item.get("get") if isinstance(item, dict) and f"GET {short}" == wanted else None
        responses = operation.get("responses") if isinstance(operation, dict) else None
        good = _resolved(described, (responses or {}).get("200", (responses or {}).get(200)))
        content = good.get("content")
        bodies = content.values() if isinstance(content, dict) else [good]
        for body in bodies:
            yield _resolved(described, body.get("schema") if isinstance(body, dict) else None)


def _record(described: dict[str, Any], schema: dict[str, Any], depth: int = 0) -> set[str]:
    """The names in a record's schema, or in that of the records of a list."""
    if depth > MAX_DEPTH:
        return set()
    properties = schema.get("properties")
    names = {str(name) for name in properties} if isinstance(properties, dict) else set()
    for part in _list(schema.get("allOf")):
        names |= _record(described, _resolved(described, part), depth + 1)
    inner = properties.get("records") if isinstance(properties, dict) else schema if "items" in schema else None
    if isinstance(inner, dict):
        items = _resolved(described, _resolved(described, inner).get("items"))
        return _record(described, items, depth + 1)
    return names


def _resolved(described: dict[str, Any], node: object) -> dict[str, Any]:
    """A node, or the node that it refers to within the description; an empty one if the reference leads nowhere."""
    for _ in range(MAX_DEPTH):
        if not isinstance(node, dict):
            return {}
        reference = node.get("$ref")
        if not isinstance(reference, str):
            return node
        node = _at(described, urlsplit(reference).fragment)
    return {}


def _at(described: object, pointer: str) -> object:
    for part in filter(None, pointer.split("/")):
        if not isinstance(described, dict):
            return None
        described = described.get(part.replace("~1", "/").replace("~0", "~"))
    return described


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
