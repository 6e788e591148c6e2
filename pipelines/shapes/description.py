"""Reads the service's own description, `swagger.yaml`: OpenAPI 3 or Swagger 2.

It comes from outside (I13): any part may be missing, wrong, or refer to itself. References to other documents are not followed. The steps
of a reading are limited, so that a small document that refers to itself in many ways is not a large one.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pipelines.inventory import LIST_PATHS, noun
from pipelines.records.files import ASSET, PRESIGN
from pipelines.records.shapes.observation import MAX_NAME
from pipelines.records.values import text_of
from pipelines.shapes.documents import UnreadableDocumentError, read_document
from pipelines.shapes.model import Description, FieldSchema, MergeSchema, PayloadSchema, ResourceSchema

MAX_STEPS = 50_000
"""Most schemas that are looked at in one description."""

MAX_REFERENCES = 40
"""Most references that are followed in a row."""

DEPTHS = ((20, 10_000), (8, MAX_STEPS))
"""Levels below a record, and the steps for them: an object within another counts two levels, a list one.

Schemas that refer to each other are many at each further level, so that only the first levels of these are looked at.
"""

MAX_FIELDS = 300
"""Most fields of one object, and most values of one enumeration."""

_MERGE = re.compile(r"\{\}/[\w-]*merge[\w-]*|[\w-]*merge[\w-]*/\{\}")
_MERGING = ("PATCH", "PUT", "POST")

_METHODS = ("get", "post", "put", "patch", "delete")


def read_description(content: bytes, *, address: str) -> Description:
    """The description of one version of the API. Never raises: what cannot be read is its `problem`."""
    description = Description(address=address, sha256=hashlib.sha256(content).hexdigest())
    try:
        document = read_document(content)
    except UnreadableDocumentError as error:
        description.problem = f"The description at {address} cannot be read: {error}."
        return description
    if not isinstance(document, dict) or not isinstance(document.get("paths"), dict):
        description.problem = f"The description at {address} has no paths, so it is none of an API."
        return description
    for levels, steps in DEPTHS:
        reader = _Reader(document, levels, steps)
        reader.read_into(description)
        if not reader.is_exhausted:
            break
    if not description.operations:
        description.problem = f"The description at {address} names no operation."
    return description


class _Reader:
    """One document, read to some levels below each record, with the steps that are left."""

    def __init__(self, document: dict[str, Any], levels: int, steps: int) -> None:
        self._document = document
        self._prefix = _prefix(document["paths"])
        self._levels, self._steps, self._most_steps = levels, steps, steps
        self.notes: set[str] = set()

    @property
    def is_exhausted(self) -> bool:
        """Whether no step was left before the end."""
        return self._steps <= 0

    def read_into(self, description: Description) -> None:
        """Put what the document says into a description."""
        description.operations = {
            name: self.query_parameters(item, operation) for name, item, operation in self.operations()
        }
        resources = {resource: self.resource(resource) for resource in LIST_PATHS}
        resources["publications"].presign = dict(_presigning(description.operations))
        description.resources = {name: schema for name, schema in resources.items() if schema != ResourceSchema()}
        description.lists = dict(self.lists())
        description.additions = dict(self.additions(description.lists))
        description.notes = sorted(self.notes)

    def operations(self) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Yield the name of each operation, such as `GET /publications/{}`, with the item of its path and its own description."""
        for path, item in self._document["paths"].items():
            if not isinstance(item, dict):
                continue
            if not str(path).startswith(self._prefix):
                continue  # of another version, or beside the API, such as its sign-in
            short = "/" + re.sub(r"\{[^}]*\}|:\w+", "{}", str(path)).removeprefix(self._prefix).strip("/")
            for method in _METHODS:
                operation = item.get(method, item.get(method.upper()))
                if isinstance(operation, dict) and len(short) <= 2 * MAX_NAME and short.isprintable():
                    yield f"{method.upper()} {short}", item, operation

    def query_parameters(self, item: dict[str, Any], operation: dict[str, Any]) -> list[str]:
        """The names of the query parameters of an operation."""
        parameters = [*_list(item.get("parameters")), *_list(operation.get("parameters"))][:MAX_FIELDS]
        resolved = (self._resolved(parameter) for parameter in parameters)
        return sorted(
            {str(parameter.get("name"))[:MAX_NAME] for parameter in resolved if parameter.get("in") == "query"}
        )

    def lists(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the path of each list with the fields of its records; without a schema, a name in the plural is one."""
        for name, _item, operation in self.operations():
            method, _, path = name.partition(" ")
            if method != "GET" or path.endswith("{}"):
                continue
            schema = self._answer(operation)
            if self._is_list(schema) or (schema is None and path.endswith("s")):
                yield path, sorted(self._record(schema, path.rpartition("/")[2]))

    def additions(self, lists: Collection[str]) -> Iterator[tuple[str, PayloadSchema]]:
        """Yield the path of each list below a record to which a POST adds an entry, with the body of that."""
        for name, _item, operation in self.operations():
            method, _, path = name.partition(" ")
            if method == "POST" and "/{}/" in path and path in lists:
                yield path, self._payload(operation, method) or PayloadSchema(method=method)

    def _is_list(self, schema: Any) -> bool:
        """Whether a body is a list, or an envelope: an object without an id that has one list."""
        if self._holds_list(schema):
            return True
        members = self._properties(schema)
        inner = [name for name, member in members.items() if self._holds_list(member)]
        return "records" in inner or ("id" not in members and len(inner) == 1)

    def _holds_list(self, schema: Any) -> bool:
        return any("items" in part or part.get("type") == "array" for part in self._parts(schema))

    def resource(self, resource: str) -> ResourceSchema:
        """What is described of a resource."""
        path = LIST_PATHS[resource]
        by_name = {name: operation for name, _item, operation in self.operations()}
        schema = ResourceSchema()
        for name in (f"GET /{path}/{{}}", f"GET /{path}"):
            if name in by_name and not schema.record:
                schema.record = self._record(self._answer(by_name[name]), path.rpartition("/")[2])
        if (operation := by_name.get(f"POST /{path}")) is not None:
            schema.create = self._payload(operation, "POST")
        for method in ("PATCH", "PUT"):
            operation = by_name.get(f"{method} /{path}/{{}}")
            if operation is not None and schema.change is None:
                schema.change = self._payload(operation, method)
        schema.merge = self._merge(path, by_name)
        if schema.create is not None:
            schema.answer_id = self._answer_id(self._answer(by_name[f"POST /{path}"]), resource)
        return schema

    def _answer_id(self, answer: Any, resource: str) -> str:
        """Where an answer names the id of a record of this resource as such, if it has no other id: the one called `id` needs no path."""
        named = f"{noun(resource).replace(' ', '_')}_id"
        fields = self._object(answer, self._levels)[0]
        paths = [*fields, *(f"{name}/{inner}" for name, field in fields.items() for inner in field.members)]
        ids = [path for path in paths if path.rpartition("/")[2] in {"id", named}]
        return ids[0] if len(ids) == 1 and ids[0].endswith(named) else ""

    def _merge(self, path: str, by_name: dict[str, dict[str, Any]]) -> MergeSchema | None:
        """The request that merges two records of the list with this path."""
        for name, operation in by_name.items():
            method, _, address = name.partition(" ")
            below = address.removeprefix(f"/{path}/")
            if method in _MERGING and address != below and _MERGE.fullmatch(below):
                body = self._payload(operation, method)
                return MergeSchema(below, body or PayloadSchema(method=method))
        return None

    def _answer(self, operation: dict[str, Any]) -> Any:
        """The schema of the body of a response 200, or of the other success."""
        responses = operation.get("responses")
        answers = responses if isinstance(responses, dict) else {}
        good = next((answers[status] for status in ("200", "201", 200, 201, "default") if status in answers), None)
        return self._body(self._resolved(good))

    def _body(self, holder: dict[str, Any]) -> Any:
        """The schema of a body in OpenAPI 3 (`content`) or Swagger 2 (`schema`)."""
        content = holder.get("content")
        if isinstance(content, dict):
            bodies = sorted(content.items(), key=lambda entry: "json" not in str(entry[0]))
            return next((body.get("schema") for _, body in bodies if isinstance(body, dict)), None)
        return holder.get("schema")

    def _payload(self, operation: dict[str, Any], method: str) -> PayloadSchema | None:
        """The body of a request; in Swagger 2 it is a parameter, or one for each field."""
        if "requestBody" in operation:
            schema = self._body(self._resolved(operation["requestBody"]))
        else:
            parameters = [self._resolved(parameter) for parameter in _list(operation.get("parameters"))[:MAX_FIELDS]]
            schema = next((parameter.get("schema") for parameter in parameters if parameter.get("in") == "body"), None)
            if schema is None:
                schema = _form_schema(parameter for parameter in parameters if parameter.get("in") == "formData")
        if schema is None:
            return None
        fields, required, is_open = self._object(schema, self._levels)
        wrapped = _wrapper(fields)
        if wrapped:
            inner = next(iter(self._properties(schema).values()))
            fields, required, is_open = self._object(inner, self._levels)
        return PayloadSchema(fields, sorted(required), is_open, wrapped, method)

    def _record(self, schema: Any, name: str = "") -> dict[str, FieldSchema]:
        """The fields of a record, of the records of a list, or of a record in a key of its own. `name`: that of the list."""
        fields, _, _ = self._object(schema, self._levels + 4)
        if "_embedded" in fields and "id" not in fields:
            fields = fields["_embedded"].members
        for key in ("records", *(("data", "items", name) if "id" not in fields else ())):
            listed = fields.get(key)
            if listed is not None and listed.entries is not None:
                return listed.entries.members
        resolved = self._resolved(schema)
        if "items" in resolved:
            return self._object(resolved["items"], self._levels)[0]
        return fields[wrapped].members if (wrapped := _wrapper(fields)) else fields

    def _properties(self, schema: Any) -> dict[str, Any]:
        """Name → schema of the members of an object, also where it is put together of several schemas."""
        members: dict[str, Any] = {}
        for part in self._parts(schema):
            properties = part.get("properties")
            if isinstance(properties, dict):
                for name, inner in list(properties.items())[:MAX_FIELDS]:
                    if isinstance(name, str) and 0 < len(name) <= MAX_NAME and name.isprintable():
                        members.setdefault(name, inner)
        return dict(list(members.items())[:MAX_FIELDS])

    def _parts(self, schema: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
        """Yield a schema and those that it is put together of."""
        resolved = self._resolved(schema)
        if not resolved or depth > MAX_REFERENCES or self._steps <= 0:
            return
        yield resolved
        for key in ("allOf", "anyOf", "oneOf"):
            for part in _list(resolved.get(key))[:MAX_FIELDS]:
                yield from self._parts(part, depth + 1)

    def _object(self, schema: Any, levels: int) -> tuple[dict[str, FieldSchema], set[str], bool]:
        """The fields of an object, the required ones, and whether it takes others."""
        required, is_open = set[str](), False
        for part in self._parts(schema):
            required |= {name for name in _list(part.get("required"))[:MAX_FIELDS] if isinstance(name, str)}
            is_open = is_open or part.get("additionalProperties") in (True, "true")
        fields = {name: self._field(inner, levels - 2) for name, inner in self._properties(schema).items()}
        return fields, required & fields.keys(), is_open

    def _field(self, schema: Any, levels: int) -> FieldSchema:
        field = FieldSchema()
        for part in self._parts(schema):
            kind = part.get("type")
            field.types += [str(name) for name in (kind if isinstance(kind, list) else [kind])[:8] if name is not None]
            field.types += ["null"] if part.get("nullable") in (True, "true") else []
            field.format = field.format or str(part.get("format") or "")[:MAX_NAME]
            choices = [*_list(part.get("enum"))[:MAX_FIELDS], part.get("const")]
            field.choices += [text[:MAX_NAME] for choice in choices if (text := text_of(choice)) is not None]
            field.read_only = field.read_only or part.get("readOnly") in (True, "true")
            if levels > 0 and "items" in part and field.entries is None:
                field.entries = self._field(part["items"], levels - 1)
        field.types = sorted({*field.types})[:8]
        if levels > 0:
            field.members = self._object(schema, levels)[0]
        return field

    def _resolved(self, node: object) -> dict[str, Any]:
        """A node, or the node that it refers to; an empty one if the reference leads nowhere, or out of the document."""
        for _ in range(MAX_REFERENCES):
            self._steps -= 1
            if self._steps <= 0:
                self.notes.add(f"Reading stopped after {self._most_steps:,} parts.")
                return {}
            if not isinstance(node, dict):
                return {}
            reference = node.get("$ref")
            if not isinstance(reference, str):
                return node
            if not reference.startswith("#/"):
                self.notes.add("References to other documents are not followed.")
                return {}
            node = _at(self._document, reference[2:])
        return {}


def _presigning(operations: Mapping[str, Collection[str]]) -> Iterator[tuple[str, str]]:
    """Yield each kind of file whose documented path to sign an upload is not described, but just one other, with that.

    `operations`: name → query parameters; `filename` and `type` are those of such a path (service.md#presign).
    """
    signing = [
        path
        for name, parameters in operations.items()
        for method, _, path in [name.partition(" /")]
        if method == "GET" and "{}" not in path and ("presign" in path or {"filename", "type"} <= {*parameters})
    ]
    unnamed = [path for path in signing if not any(kind in path for kind in (*PRESIGN, "avatar"))]
    for kind, documented in PRESIGN.items():
        paths = [path for path in signing if kind in path] or (unnamed if kind == ASSET else [])
        if documented not in paths and len(paths) == 1:
            yield kind, paths[0]


def _prefix(paths: dict[Any, Any]) -> str:
    """The prefix that most paths have, such as /api/v3, with a slash; the newest of several. Empty if the server's address includes it."""
    prefixes = Counter(prefix[0] if (prefix := _VERSIONED.match(str(path))) else "" for path in paths)
    return max(prefixes, key=lambda prefix: (prefixes[prefix], prefix), default="")


_VERSIONED = re.compile(r"(?:/.{0,200})?/(?:api/)?v[23]/")


def _form_schema(parameters: Iterator[dict[str, Any]]) -> dict[str, Any] | None:
    """The schema of an object of these fields of a form; those of `collection[name]` and `variants[][label]` are within objects."""
    objects: dict[tuple[str, ...], dict[str, Any]] = {}
    for name, parameter in ((str(parameter.get("name", "")), parameter) for parameter in parameters):
        *above, last = re.findall(r"[^\[\]]+(?:\]?\[\])?", name[:MAX_NAME]) or [""]
        path: tuple[str, ...] = ()
        holder = objects.setdefault(path, {"properties": {}, "required": []})
        for part in above:
            path = (*path, part.rstrip("[]"))
            inner = objects.setdefault(path, {"properties": {}, "required": []})
            holder["properties"][path[-1]] = {"type": "array", "items": inner} if part.endswith("[]") else inner
            holder = inner
        holder["properties"][last.rstrip("[]")] = parameter
        holder["required"] += [last.rstrip("[]")] if parameter.get("required") in (True, "true") else []
    return objects.get(())


def _wrapper(fields: dict[str, FieldSchema]) -> str:
    """The one key of an object that holds nothing but another object: the record is inside it."""
    if len(fields) != 1:
        return ""
    [(name, field)] = fields.items()
    return name if field.members and "array" not in field.types else ""


def _at(document: object, pointer: str) -> object:
    for part in filter(None, pointer.split("/")[:MAX_REFERENCES]):
        if not isinstance(document, dict):
            return None
        document = document.get(part.replace("~1", "/").replace("~0", "~"))
    return document


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
