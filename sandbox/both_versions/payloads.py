"""Validates request bodies against the schema of their endpoint; 422 names the wrong place.

The schemas are those of the machine-readable description, so description and validation cannot differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from math import isfinite
from typing import Any, NoReturn

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, best_match
from werkzeug.wrappers import Request

from sandbox.errors import bad_request, unprocessable

Schemas = Mapping[str, Mapping[str, Any]]

_REFERENCE = re.compile(r'"\$ref": "#/components/schemas/([^"]*)"')
_FORMATS = FormatChecker(["date", "regex"])


def _is_time(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


_FORMATS.checks("date-time", raises=ValueError)(_is_time)


def read_payload(request: Request, name: str, schemas: Schemas) -> Any:
    """Returns the parsed body; 400 if it is not JSON, 422 if it does not meet the schema of this name."""
    payload = parsed_json(request.get_data())
    if problem := payload_problem(payload, schemas[name], schemas):
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


def payload_problem(value: Any, schema: Mapping[str, Any], schemas: Schemas) -> str | None:
    """Returns what is wrong with a value, and where; ``schemas`` are the targets of ``$ref``."""
    whole = {"allOf": [schema], "components": {"schemas": schemas}}
    problem = best_match(Draft202012Validator(whole, format_checker=_FORMATS).iter_errors(value))
    if problem is None:
        return None
    place = problem.json_path.removeprefix("$").removeprefix(".")
    return f"{place or 'The body'}: {problem.message}"


def schema_problem(schema: Any, schemas: Schemas) -> str | None:
    """Returns why a schema is none; its references have to be among ``schemas``."""
    if not isinstance(schema, dict):
        return "must be an object"
    try:
        Draft202012Validator.check_schema(schema, format_checker=_FORMATS)
    except SchemaError as error:
        return str(error.message)
    unknown = set(_REFERENCE.findall(json.dumps(schema))) - schemas.keys()
    return f"there is no schema {min(unknown)}" if unknown else None


def _number(text: str) -> int | float:
    """Parses a number. In JSON Schema ``7.0`` is an integer."""
    value = float(text)
    if not isfinite(value):
        raise ValueError(text)
    return int(value) if value.is_integer() else value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
