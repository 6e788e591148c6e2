"""The tables of bookferry.toml that describe further types of identifiers.

[identifiers.pmcid]
pattern = "PMC[1-9][0-9]{0,7}"          # the whole value, as a regular expression
fields = ["pmcid", "pmc"]               # v2's fields with this identifier; by default the field of the type's name
case = "upper"                          # or "lower", "keep"
identifies = true                       # two publications with the same value are the same: a migration may match by it
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from pipelines.records.tables.publication_fields import IDENTIFIER_FIELDS, IDENTIFIER_LIST, PUBLICATION_KEYS


def _expression(pattern: str) -> str:
    try:
        compiled = re.compile(pattern, re.ASCII)
    except re.error as error:
        raise ValueError(f"is no regular expression ({error})") from None
    if compiled.groups:
        raise ValueError("has a group that captures; write (?:…) instead of (…)")
    if compiled.fullmatch(""):
        raise ValueError("matches empty text; no identifier is empty")
    return pattern


def _free(field: str) -> str:
    if field in PUBLICATION_KEYS or field == IDENTIFIER_LIST or field.endswith("url"):
        raise ValueError("has another meaning in every publication; name another field")
    return field


TypeName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
FieldName = Annotated[str, StringConstraints(pattern=r'^[^"\\\x00-\x1f]+$'), AfterValidator(_free)]
"""A key of a record without quotes, backslashes and control characters, which the fast parser does not read."""


class IdentifierSettings(BaseModel):
    """The table of one type."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pattern: Annotated[str, AfterValidator(_expression)]
    fields: tuple[FieldName, ...] = ()
    case: Literal["upper", "lower", "keep"] = "keep"
    identifies: bool = Field(default=False, strict=True)


def check_field_owners(tables: dict[str, IdentifierSettings]) -> dict[str, IdentifierSettings]:
    """Returns the tables; raises `ValueError` if a field belongs to two types. For a validator."""
    owners = {field: field for field in IDENTIFIER_FIELDS if field not in tables}
    for name, table in tables.items():
        for field in table.fields or (_free(name),):
            owner = owners.setdefault(field, name)
            if owner != name:
                raise ValueError(f"gives the field {field} to two types, {owner} and {name}; leave it to one of them")
    return tables
