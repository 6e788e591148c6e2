"""Why a value of a record is not sent: the codes that stand beside it in a plan (`migration/model/reasons.py` has their sentences)."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from pipelines.records.additional_fields import is_managed


class LeftOut(StrEnum):
    """The code of a reason. None is ever renamed (docs/reports.md)."""

    NOT_DESCRIBED = "not_described"
    """The target's description does not have it in what it takes."""
    READ_ONLY = "read_only"
    """The target's description says that the service fills it."""
    UNKNOWN_REFERENCE = "unknown_reference"
    """It may refer to records, and it is unknown of which resource."""
    NO_RECORD = "no_record"
    """The target does not have the record to which it refers, and the plan does not create it."""
    NOT_A_CHOICE = "not_a_choice"
    """The target's description does not have the value among those that it takes."""
    OTHER_TYPE = "other_type"
    """The target's description takes values of another type."""
    NOT_SHOWN = "not_shown"
    """Neither a description nor the records of the target show that it has the field."""
    LINK = "link"
    """It refers to another record, of an unknown resource or of one that the plan does not move."""
    NOT_MAPPED = "not_mapped"
    """The mapping file of the two libraries does not send it."""
    BY_ACTION = "by_action"
    """A request of its own sets it after a record is created, and this record is there already."""
    NOT_SENDABLE = "not_sendable"
    """It is nested too deeply, or a number of more than 64 bits."""
    BESIDE_LINK = "beside_link"
    """It stands beside the id in a list at an address of its own, to which only ids are added."""
    SIGNED = "signed"
    """It has signed addresses, which change in every response."""
    NO_DAY = "no_day"
    PART_OF_DATE = "part_of_date"
    """A year or a month."""
    FIRST_DAY = "first_day"
    """The same, which is sent as its first day."""
    NO_USER = "no_user"
    NO_ORGANIZATION = "no_organization"
    NO_CATEGORY = "no_category"
    """A category without a name."""
    UNKNOWN_PART = "unknown_part"
    """A part of a documented field that the service does not document."""
    FILLED_BY_SERVICE = "filled_by_service"
    DEPRECATED = "deprecated"
    """Version 2 announces it as deprecated (service.md#deprecation)."""
    OTHER_FORM = "other_form"
    """It does not have the form that is documented."""
    UNKNOWN_IDENTIFIER = "unknown_identifier"
    """It may be an identifier of a type that the configuration could describe."""


DEPRECATED_FIELD = "import_state"
"""The field that version 2 announces as deprecated."""

_LINK = re.compile(r"(?:.*\.)?(collections?|authorit(?:y|ies))(?:_ids?)?(?:\[\d*\])?'*")
"""A field of a publication, or of an author, that is named after another resource."""

IDENTIFIER_NAMES = frozenset(
    {"ark", "asin", "gtin", "handle", "hdl", "ismn", "lccn", "oclc", "pmc", "pmcid", "uri", "urn", "wos", "zbl"}
)
"""Names of fields that are identifiers whatever their values look like."""

_CONFIGURABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
"""Names that a table [identifiers.NAME] may have."""

_LOOKS_LIKE_IDENTIFIER = re.compile(r"(?=\S*\d)(?!\d{4}-\d\d)(?!true|false|null)[\w./:;()<>+-]{4,100}", re.ASCII)
"""A text without blanks and with a digit that does not begin like a date."""


def why_unknown(path: str, value: object) -> LeftOut:
    """Why a value of a publication that no rule names is not sent."""
    if (why := _why_by_name(path)) is not None:
        return why
    return LeftOut.UNKNOWN_IDENTIFIER if looks_like_identifier(path, value) else LeftOut.NOT_SHOWN


@lru_cache(1000)  # most records have the same
def _why_by_name(path: str) -> LeftOut | None:
    if path == DEPRECATED_FIELD:
        return LeftOut.DEPRECATED
    if _LINK.fullmatch(path):
        return LeftOut.LINK
    if is_managed(path):
        return LeftOut.FILLED_BY_SERVICE
    return LeftOut.UNKNOWN_PART if "." in path or "[" in path else None


def looks_like_identifier(name: str, value: object) -> bool:
    """Whether the value of an unknown field may be an identifier of a type that the configuration could describe."""
    if _CONFIGURABLE.fullmatch(name) is None:
        return False
    if name.lower() in IDENTIFIER_NAMES:
        return True
    return (
        type(value) is str
        and _LOOKS_LIKE_IDENTIFIER.fullmatch(value) is not None
        and "://" not in value
        and not name.endswith(("_at", "_on", "date"))
    )
