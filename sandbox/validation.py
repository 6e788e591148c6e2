"""Fills dataclasses from JSON: unknown names, wrong types and invalid values raise 422.

``one_of`` and ``at_least`` declare the rule of a field.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import Field, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from sandbox.errors import unprocessable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Form = TypeVar("Form", bound="DataclassInstance")

_TYPES: Mapping[object, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "int | str | None": (int, str, type(None)),
    "list[int]": (list,),
}


def one_of(*allowed: Any) -> Any:
    """Declares a field with one of these values; the first is the default."""
    return field(default=allowed[0], metadata={"allowed": allowed})


def at_least(least: float, default: float) -> Any:
    """Declares a number that is not below ``least``."""
    return field(default=default, metadata={"least": least})


def with_changes(form: Form, values: Mapping[str, Any]) -> Form:
    """Returns the dataclass with some values replaced, or raises 422. The caller checks fields of other types."""
    rules = {rule.name: rule for rule in fields(form)}
    for name, value in values.items():
        if name not in rules:
            raise unprocessable(f"{name}: unknown; known are {', '.join(sorted(rules))}")
        if problem := _problem(value, rules[name]):
            raise unprocessable(f"{name}: {problem}")
    return replace(form, **values)


def nested_object(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Returns the object under ``name``, empty if there is none."""
    value = values.get(name, {})
    if not isinstance(value, Mapping):
        raise unprocessable(f"{name}: must be an object")
    return value


def _problem(value: Any, rule: Field[Any]) -> str | None:
    if rule.type in _TYPES and not _has_type(value, _TYPES[rule.type]):
        return f"must be {rule.type}"
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number"
    if "allowed" in rule.metadata and value not in rule.metadata["allowed"]:
        return f"must be one of {', '.join(map(str, rule.metadata['allowed']))}"
    if "least" in rule.metadata and not value >= rule.metadata["least"]:
        return f"must be at least {rule.metadata['least']}"
    return None


def _has_type(value: object, types: tuple[type, ...]) -> bool:
    """JSON's true and false are no numbers, although Python's are."""
    if isinstance(value, list):
        return list in types and all(_has_type(entry, (int,)) for entry in value)
    return isinstance(value, types) and (bool in types or not isinstance(value, bool))
