"""Validates request bodies against the schema of their endpoint; 422 names the wrong place.

The schemas are those of the machine-readable description, so description and validation cannot differ. The module knows the
keywords of JSON Schema that they use; any other keyword is an error in the schema and fails at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from math import isfinite
from typing import Any, NoReturn

from werkzeug.wrappers import Request

from sandbox.errors import bad_request, unprocessable

Schemas = Mapping[str, Mapping[str, Any]]

_REFERENCE = "#/components/schemas/"
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DATE_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII
)
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_ANNOTATIONS = {"description", "deprecated", "examples", "default", "title", "readOnly", "writeOnly"}
_WITHOUT_RULE = _ANNOTATIONS | {"additionalProperties"}  # which is read together with `properties`


def read_payload(request: Request, name: str, schemas: Schemas, *, ignore_unknown: bool = False) -> Any:
    """Returns the parsed body; 400 if it is not JSON, 422 if it does not meet the schema of this name.

    ``ignore_unknown``: fields that are not in the schema are allowed.
    """
    payload = parsed_json(request.get_data())
    for problem in SchemaValidator(schemas, ignore_unknown=ignore_unknown).problems(payload, schemas[name], ""):
        raise unprocessable(problem)
    return payload


def parsed_json(body: bytes) -> Any:
    """Parses strict JSON, or raises 400: Python would accept ``NaN``, and half a surrogate pair, which cannot be encoded."""
    try:
        payload = json.loads(body, parse_constant=_refuse_constant, parse_float=_number)
        json.dumps(payload, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise bad_request("The body is not JSON") from None
    return payload


def _number(text: str) -> int | float:
    """Parses a number. In JSON Schema ``7.0`` is an integer."""
    value = float(text)
    if not isfinite(value):
        raise ValueError(text)
    return int(value) if value.is_integer() else value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


@dataclass(frozen=True, slots=True)
class SchemaValidator:
    """Validates values against schemas; ``schemas`` are the targets of ``$ref``."""

    schemas: Schemas
    ignore_unknown: bool = False

    def problems(self, value: Any, schema: Mapping[str, Any], place: str) -> Iterator[str]:
        """Yields what is wrong with a value, and where."""
        for word, rule in schema.items():
            if word in _VALUE_RULES:
                if text := _VALUE_RULES[word](value, rule):
                    yield _problem_at(place, text)
            elif word not in _WITHOUT_RULE:
                yield from _STRUCTURE_RULES[word](self, value, rule, place)
        if "additionalProperties" in schema and isinstance(value, dict):
            yield from self._further(value, schema, place)

    def _further(self, value: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> Iterator[str]:
        """Validates the fields that ``properties`` does not name."""
        rule = schema["additionalProperties"]
        for name in sorted(value.keys() - schema.get("properties", {}).keys()):
            if isinstance(rule, Mapping):
                yield from self.problems(value[name], rule, _field_path(place, name))
            elif not rule and not self.ignore_unknown:
                yield _problem_at(_field_path(place, name), "is unknown")

    def reference(self, value: Any, rule: str, place: str) -> Iterator[str]:
        """Validates against a named schema."""
        yield from self.problems(value, self.schemas[rule.removeprefix(_REFERENCE)], place)

    def properties(self, value: Any, rule: Mapping[str, Any], place: str) -> Iterator[str]:
        """Validates the fields of an object."""
        if isinstance(value, dict):
            for name in rule:
                if name in value:
                    yield from self.problems(value[name], rule[name], _field_path(place, name))

    def items(self, value: Any, rule: Mapping[str, Any], place: str) -> Iterator[str]:
        """Validates the entries of a list."""
        if isinstance(value, list):
            for position, each in enumerate(value):
                yield from self.problems(each, rule, f"{place}[{position}]")

    def required(self, value: Any, rule: list[str], place: str) -> Iterator[str]:
        """Checks the required fields of an object."""
        if isinstance(value, dict):
            yield from (_problem_at(_field_path(place, name), "is missing") for name in rule if name not in value)

    def any_of(self, value: Any, rule: list[Mapping[str, Any]], place: str) -> Iterator[str]:
        """Validates against alternatives; if none fits, yields the problem of the first."""
        problems = [next(self.problems(value, each, place), None) for each in rule]
        if None not in problems:
            yield str(problems[0])


def _type(value: Any, rule: str | list[str]) -> str | None:
    allowed = [rule] if isinstance(rule, str) else rule
    return None if any(_is(value, name) for name in allowed) else f"must be {' or '.join(allowed)}"


def _is(value: Any, name: str) -> bool:
    """JSON's true and false are no numbers, although Python's are."""
    return name == "boolean" if isinstance(value, bool) else isinstance(value, _TYPES[name])


def _enum(value: Any, rule: list[Any]) -> str | None:
    is_listed = any(type(value) is type(each) and value == each for each in rule)
    return None if is_listed else f"must be one of {', '.join(map(json.dumps, rule))}"


def _bound(
    kind: type | tuple[type, ...], size: Callable[[Any], float], words: str, *, least: bool
) -> Callable[[Any, Any], str | None]:
    """Returns the rule of a keyword that bounds values of one type."""

    def problem(value: Any, rule: float) -> str | None:
        if isinstance(value, bool) or not isinstance(value, kind):
            return None
        wrong = size(value) < rule if least else size(value) > rule
        return words.format(rule) if wrong else None

    return problem


def _const(value: Any, rule: Any) -> str | None:
    return None if _enum(value, [rule]) is None else f"must be {json.dumps(rule)}"


def _pattern(value: Any, rule: str) -> str | None:
    return f"must match {rule}" if isinstance(value, str) and not re.search(rule, value) else None


def _format(value: Any, rule: str) -> str | None:
    if rule == "date" and isinstance(value, str) and not _is_date(value):
        return "must be a date, YYYY-MM-DD"
    if rule == "date-time" and isinstance(value, str) and not _is_date_time(value):
        return "must be a time such as 2020-01-31T00:00:00Z"
    return None


def _is_date_time(text: str) -> bool:
    """Returns whether it is a time as RFC 3339 writes it."""
    parts = _DATE_TIME.fullmatch(text)
    return parts is not None and _is_date(parts[1])


def _is_regular_expression(text: str) -> bool:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _is_date(text: str) -> bool:
    try:
        return _DATE.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _problem_at(place: str, text: str) -> str:
    return f"{place or 'The body'} {text}"


def _field_path(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


_VALUE_RULES: Mapping[str, Callable[[Any, Any], str | None]] = {
    "type": _type,
    "enum": _enum,
    "minProperties": _bound(dict, len, "must have at least {} fields", least=True),
    "minLength": _bound(str, len, "must have at least {} characters", least=True),
    "maxLength": _bound(str, len, "must have at most {} characters", least=False),
    "minItems": _bound(list, len, "must have at least {} entries", least=True),
    "maxItems": _bound(list, len, "must have at most {} entries", least=False),
    "minimum": _bound((int, float), lambda number: number, "must be at least {}", least=True),
    "maximum": _bound((int, float), lambda number: number, "must be at most {}", least=False),
    "const": _const,
    "pattern": _pattern,
    "format": _format,
}
_STRUCTURE_RULES: Mapping[str, Callable[[SchemaValidator, Any, Any, str], Iterator[str]]] = {
    "$ref": SchemaValidator.reference,
    "properties": SchemaValidator.properties,
    "items": SchemaValidator.items,
    "required": SchemaValidator.required,
    "anyOf": SchemaValidator.any_of,
}


def schema_problems(schema: Any, schema_names: Collection[str]) -> Iterator[str]:
    """Yields why a schema is none that a ``SchemaValidator`` with the schemas of ``schema_names`` can work with."""
    if not isinstance(schema, dict):
        yield "must be an object"
        return
    for word, rule in schema.items():
        if word == "$ref" and str(rule).removeprefix(_REFERENCE) not in schema_names:
            yield f"there is no schema {rule}"
        elif word == "type" and not set([rule] if isinstance(rule, str) else rule) <= _TYPES.keys():
            yield f"type must be one of {', '.join(_TYPES)}"
        elif word == "pattern" and not _is_regular_expression(rule):
            yield "pattern must be a regular expression"
        elif word not in _VALUE_RULES.keys() | _STRUCTURE_RULES.keys() | _WITHOUT_RULE:
            yield f"{word} is unknown"
        inner = {
            "items": [rule],
            "anyOf": rule,
            "properties": list(rule.values()) if isinstance(rule, dict) else [rule],
        }
        for each in inner.get(word, []):
            yield from schema_problems(each, schema_names)
