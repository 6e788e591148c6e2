"""The reason why a value of the source is not moved."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pipelines.migration.model.reasons import REASONS, Kind, Reason
from pipelines.migration.model.resource_types import PUBLICATIONS, REFERENCES, AdditionalFields, LeftOut, ResourceType
from pipelines.publication_fields import DATE_FIELDS, IDENTIFIER_FIELDS, WRITTEN
from pipelines.records.additional_fields import is_managed
from pipelines.records.advice import advice_of, code_of
from pipelines.records.forms import precision_of
from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.records.identifiers.verdicts import GOOD
from pipelines.records.values import partial_date

NAMED = {
    "contributor": "no_user",
    "organization": "no_organization",
    "published_on": "no_day",
    "import_state": "deprecated",
}
"""Field → code."""

_PRECISIONS = frozenset(map(precision_of, DATE_FIELDS))

_CATEGORY = re.compile(r"categories\[\d+\]'*")
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

_FIRST_NAME = re.compile(r"[^.\[]+")

_ONE_FIELD = re.compile(r"(\w+)(?:\[\d*\])?'*")
"""A field, or one entry of it. Longer paths lead to unknown parts of a known entry."""


def reason_unsent(
    types: Mapping[str, ResourceType], additional: AdditionalFields, resource: str, path: str, text: str | None
) -> Reason:
    """Why a value is not moved. `text`: the value of a publication, where it is a text.

    `types`, `additional`: what the plan learned of the other resources, and of the additional fields of publications.
    """
    if resource != PUBLICATIONS:
        learned = _left_out_of(types[resource], path) if resource in types else ""
    else:
        learned = _left_out_of_publication(additional, path, text)
    return REASONS[learned] if learned else _on_partial_date(path, text) or _on_field(path, text)


def _left_out_of(resource_type: ResourceType, path: str) -> str:
    """The code for a field of another resource; empty where nothing was learned about it."""
    name = path.partition(".")[0].partition("[")[0]
    if name in resource_type.references:
        return LeftOut.NO_RECORD
    return resource_type.left_out.get(name, LeftOut.NOT_A_CHOICE if name in resource_type.choices else "")


def _left_out_of_publication(fields: AdditionalFields, name: str, text: str | None) -> str:
    """The code for an additional field; empty where nothing was learned about it, or where its values look like identifiers."""
    rule = fields.moved.get(name)
    if rule is None:
        reason = fields.left_out.get(name, "")
        is_lacking = reason in (LeftOut.NOT_DESCRIBED, LeftOut.NOT_SHOWN)
        return "" if is_lacking and looks_like_identifier(name, text) else reason
    if rule.leads_to:
        return LeftOut.NO_RECORD
    return LeftOut.NOT_A_CHOICE if rule.choices else LeftOut.OTHER_TYPE if rule.types else LeftOut.NOT_SENDABLE


def looks_like_identifier(path: str, text: str | None) -> bool:
    """Whether an unsent value may be an identifier of a type that the configuration could describe."""
    if _CONFIGURABLE.fullmatch(path) is None:
        return False
    if path.lower() in IDENTIFIER_NAMES:
        return True
    return (
        text is not None
        and _LOOKS_LIKE_IDENTIFIER.fullmatch(text) is not None
        and "://" not in text
        and not path.endswith(("_at", "_on", "date"))
    )


def _on_partial_date(path: str, text: str | None) -> Reason | None:
    """The reason of a year or a month; None for any other value."""
    partial = partial_date(text) if text is not None else None
    if partial is None:
        return None
    if path in _PRECISIONS:
        return REASONS["first_day"].filled(day=partial.first)
    return REASONS["part_of_date"] if path in DATE_FIELDS else None


def _on_field(path: str, text: str | None) -> Reason:
    """The reason of a field that is documented, or that no rule names."""
    match = _ONE_FIELD.fullmatch(path)
    name = match[1] if match else ""
    if name in IDENTIFIER_FIELDS:
        return _on_identifier(name, text)
    rules = (
        (name in REFERENCES, LeftOut.NO_RECORD),
        (name in NAMED, NAMED.get(name, "")),
        (text is None and _CATEGORY.fullmatch(path), "no_category"),  # it is named by its number
        (name in WRITTEN, "other_form"),
        (_LINK.fullmatch(path), LeftOut.LINK),
        (is_managed(path), "filled_by_service"),
        (_FIRST_NAME.fullmatch(path) is None, "unknown_part"),
        (looks_like_identifier(path, text), "unknown_identifier"),
    )
    code = next((code for applies, code in rules if applies), LeftOut.NOT_SHOWN)
    table = f"[identifiers.{path.lower()}]" + ("" if path.islower() else f' with fields = ["{path}"]')
    return REASONS[code].filled(table=table)


def _on_identifier(name: str, text: str | None) -> Reason:
    if text is None:
        return REASONS["no_text"]
    invalid = next((found for found in STANDARD_KINDS.read(name, text) if found.verdict not in GOOD), None)
    if invalid is None:
        return REASONS["other_form"]
    return Reason(code_of(invalid.rule), *advice_of(invalid.rule, invalid.type), kind=Kind.IDENTIFIERS)
