"""Values of the source that are not moved: why, what to do about them, and which of them refer to other records."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from pipelines.migration.model.resource_types import PUBLICATIONS, REFERENCES, AdditionalFields, LeftOut, ResourceType
from pipelines.publication_fields import DATE_FIELDS, IDENTIFIER_FIELDS, WRITTEN
from pipelines.publication_fields import REFERENCES as PUBLICATION_REFERENCES
from pipelines.records.additional_fields import is_managed
from pipelines.records.advice import Advice, advice_of, code_of
from pipelines.records.forms import precision_of
from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.records.identifiers.verdicts import GOOD
from pipelines.records.values import partial_date

UNKNOWN_FIELD = Advice(
    "Nothing shows that the target has such a field, neither its description nor its records, so it is not moved.",
    "Nothing has to be done: every backup keeps it. `bookferry describe TENANT` shows which fields the target has; once a publication "
    "there has this one, the next plan will move it.",
)
UNKNOWN_PART = Advice(
    "Only the documented parts of this field are moved, and this is none of them.",
    "Nothing has to be done: every backup keeps it. If people need it, enter it in the target by hand.",
)
FILLED_BY_SERVICE = Advice(
    "A field of this name is filled by the service itself, so it is not moved.",
    "Nothing has to be done: every backup keeps it.",
)
DEPRECATED = Advice(
    "Version 2 announces this field as deprecated, so it is not moved.",
    "Nothing has to be done: every backup keeps it. If people need it, enter it in a field that version 3 has.",
)
NO_RECORD = Advice(
    "The target does not have the record with this number, and this plan does not create it.",
    "Look up that record in this plan; once the target has it, the next plan will refer to it.",
)
NO_USER = Advice(
    "It names a user whom this plan did not find in the target.",
    "Move the users, too (--resources users); the next plan will then name the right one.",
)
NO_ORGANIZATION = Advice(
    "It names an organization by its number in the source, and no program can list the organizations of the target.",
    "Nothing has to be done: every backup keeps it. If it matters, enter it in the target by hand.",
)
NO_DAY = Advice(
    "This is not a complete date, and version 3 takes only complete dates, so it is not moved.",
    "Write year, month and day, such as 1984-06-08, in the source; the next plan will move it.",
)
PART_OF_DATE = Advice(
    NO_DAY.problem,
    "Write year, month and day, such as 1984-06-08, in the source, or make the plan with --first-days; it will "
    "move it.",
)
SENT_AS_FIRST_DAY = Advice(
    "This is only a year or a month, and version 3 takes only complete dates: it is sent as its first day, {}, unless the target has a day "
    "of that year or month already.",
    "Write year, month and day in the source; the next plan will send them.",
)
OTHER_FORM = Advice(
    "It does not have the form that version 3 takes, so it is not moved.",
    "Correct it in the source; the next plan will move it.",
)
NO_CATEGORY = Advice(
    "It names a category without a name, and numbers count within one library only.",
    "Give the category a name in the source; the next plan will move it.",
)
NO_LINK = Advice(
    "It refers to another record by its number in the source, and this plan does not move that link.",
    "Nothing has to be done: every backup keeps it. If it matters, make the link in the target by hand.",
)
NO_IDENTIFIER = Advice(
    "These identifiers break the rules of their type, so they are not sent.",
    "Each is a line in issues.xlsx that says what is wrong. Correct it in the source, or have all of them sent unchanged: "
    "make the plan with --invalid-identifiers.",
)
NO_TEXT = Advice(
    "These fields have only blanks, or no text, so there is nothing to send.",
    "Clear the field in the source, or enter the right identifier; the next plan will move it.",
)
UNKNOWN_IDENTIFIER = Advice(
    "It looks like an identifier of a type that Bookferry does not know, so it is not moved.",
    "If it is one, describe its type in bookferry.toml: {table}. The next plan will move it, without a new backup.",
)

LEFT_OUT = {
    LeftOut.NOT_DESCRIBED: Advice(
        "The target's own description does not have this field among those that it takes, so it is not moved.",
        "Nothing has to be done: every backup keeps it. `bookferry describe` shows what the target takes.",
    ),
    LeftOut.READ_ONLY: Advice(
        "By its own description, the target fills this field itself, so it is not moved.",
        "Nothing has to be done: every backup keeps it.",
    ),
    LeftOut.UNKNOWN_REFERENCE: Advice(
        "It may name records by their numbers in the source, and nothing says for certain which records those are, so it is not moved: the "
        "same numbers are other records in the target.",
        "Every backup keeps it. If it matters, enter it in the target by hand.",
    ),
    LeftOut.NOT_A_CHOICE: Advice(
        "The target's own description does not have this value among those that it takes, so it is not moved.",
        "Change the value in the source to one that the target takes (`bookferry describe` lists them); the next plan will move it.",
    ),
    LeftOut.OTHER_TYPE: Advice(
        "The target's own description takes values of another type in this field, so this one is not moved.",
        "Change the value in the source to one of that type (`bookferry describe` shows it); the next plan will move it.",
    ),
    LeftOut.NOT_SENDABLE: Advice(
        "It is nested too deeply to be sent, or has a number of more than 64 bits, or the signed address of a file.",
        "Nothing has to be done: every backup keeps it. If people need it, enter it in the target by hand.",
    ),
    LeftOut.NO_RECORD: NO_RECORD,
    LeftOut.NOT_SHOWN: UNKNOWN_FIELD,
    LeftOut.LINK: NO_LINK,
    LeftOut.SIGNED: Advice(
        "It has signed addresses of files, which change in every response, so it is not moved.",
        "Nothing has to be done: every backup keeps it.",
    ),
}
"""Why a field is not moved → the text."""

NOTHING_TO_DO = frozenset(
    advice.suggestion
    for advice in (
        UNKNOWN_FIELD,
        UNKNOWN_PART,
        FILLED_BY_SERVICE,
        DEPRECATED,
        LEFT_OUT[LeftOut.NOT_DESCRIBED],
        LEFT_OUT[LeftOut.READ_ONLY],
        LEFT_OUT[LeftOut.SIGNED],
    )
)
"""Suggestions of values about which nobody has to do anything."""

_CODES = {
    UNKNOWN_FIELD: LeftOut.NOT_SHOWN.value,
    UNKNOWN_PART: "unknown_part",
    FILLED_BY_SERVICE: "filled_by_service",
    DEPRECATED: "deprecated",
    NO_RECORD: LeftOut.NO_RECORD.value,
    NO_USER: "no_user",
    NO_ORGANIZATION: "no_organization",
    NO_DAY: "no_day",
    PART_OF_DATE: "part_of_date",
    SENT_AS_FIRST_DAY: "first_day",
    OTHER_FORM: "other_form",
    NO_CATEGORY: "no_category",
    NO_LINK: LeftOut.LINK.value,
    NO_IDENTIFIER: "no_identifier",
    NO_TEXT: "no_text",
    UNKNOWN_IDENTIFIER: "unknown_identifier",
}

UNSENT_CODES = frozenset({*map(str, LeftOut), *_CODES.values()})
"""Codes of values that are not moved, besides the rules of identifiers. None is ever renamed."""

NAMED = {"contributor": NO_USER, "organization": NO_ORGANIZATION, "published_on": NO_DAY}
"""Field → advice."""

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


def is_reference(resource: str, path: str, value: object, references: Collection[str] = ()) -> bool:
    """Whether an unsent value refers to another record. `references`: the fields that a plan knows to do so."""
    found = _ONE_FIELD.fullmatch(path)
    if resource != PUBLICATIONS:
        name = path.partition("[")[0].rstrip("'")
        return name in REFERENCES or name in references
    if found is not None and (found[1] in PUBLICATION_REFERENCES or found[1] in references):
        return True
    if _CATEGORY.fullmatch(path):
        return isinstance(value, dict) and "id" in value
    return _LINK.fullmatch(path) is not None


def looks_like_identifier(path: str, value: object) -> bool:
    """Whether an unsent value may be an identifier of a type that the configuration could describe."""
    if _CONFIGURABLE.fullmatch(path) is None:
        return False
    if path.lower() in IDENTIFIER_NAMES:
        return True
    return (
        isinstance(value, str)
        and _LOOKS_LIKE_IDENTIFIER.fullmatch(value) is not None
        and "://" not in value
        and not path.endswith(("_at", "_on", "date"))
    )


def reason_left_out(
    types: Mapping[str, ResourceType],
    resource: str,
    path: str,
    value: object = None,
    additional: AdditionalFields | None = None,
) -> str:
    """Why a field is not moved: a `LeftOut`; empty where nothing was learned about it, or where its values look like identifiers.

    `additional`: what was learned of publications.
    """
    found, resource_type = _FIRST_NAME.match(path), types.get(resource)
    if found is None:
        return ""
    name = found[0]
    if resource == PUBLICATIONS:
        return _reason_of_publication(additional or AdditionalFields(), path, value)
    if resource_type is None:
        return ""
    if name in resource_type.references:
        return LeftOut.NO_RECORD
    return resource_type.left_out.get(name, LeftOut.NOT_A_CHOICE if name in resource_type.choices else "")


def _reason_of_publication(fields: AdditionalFields, name: str, value: object) -> str:
    rule = fields.moved.get(name)
    if rule is None:
        reason = fields.left_out.get(name, "")
        is_lacking = reason in (LeftOut.NOT_DESCRIBED, LeftOut.NOT_SHOWN)
        return "" if is_lacking and looks_like_identifier(name, value) else reason
    if rule.leads_to:
        return LeftOut.NO_RECORD
    return LeftOut.NOT_A_CHOICE if rule.choices else LeftOut.OTHER_TYPE if rule.types else LeftOut.NOT_SENDABLE


def advice_on_unsent(path: str, value: object, *, sends_invalid: bool = False, left_out: str = "") -> Advice:
    """The text about a value that is not moved; without a value, about all values with that path.

    `sends_invalid`: whether the plan sends identifiers that break the rules of their type. `left_out`: the result of `reason_left_out`.
    """
    return explain_unsent(path, value, sends_invalid=sends_invalid, left_out=left_out)[1]


def explain_unsent(path: str, value: object, *, sends_invalid: bool = False, left_out: str = "") -> tuple[str, Advice]:
    """The same with its code, which is one of `UNSENT_CODES` or, for an identifier, the rule that it breaks."""
    known = (left_out, LEFT_OUT[LeftOut(left_out)]) if left_out in LEFT_OUT else _on_partial_date(path, value)
    if known is not None:
        return known
    found = _ONE_FIELD.fullmatch(path)
    name = found[1] if found else ""
    if name in IDENTIFIER_FIELDS:
        return _on_identifier(name, value, sends_invalid=sends_invalid)
    if name in REFERENCES:
        return _coded(NO_RECORD)
    if name in NAMED:
        return _coded(NAMED[name])
    if name in WRITTEN:
        return _coded(NO_CATEGORY if _CATEGORY.fullmatch(path) else OTHER_FORM)
    return _on_unknown(path, value)


def is_about_the_field(path: str) -> bool:
    """Whether the text about a path is the same for all its values: it is about the field, not about the value of one record."""
    found = _ONE_FIELD.fullmatch(path)
    return found is None or found[1] not in {*IDENTIFIER_FIELDS, *REFERENCES, *NAMED, *WRITTEN, *_PRECISIONS}


def _coded(advice: Advice) -> tuple[str, Advice]:
    return _CODES[advice], advice


def _on_partial_date(path: str, value: object) -> tuple[str, Advice] | None:
    """The text about a year or a month; None for any other value."""
    found = partial_date(value) if isinstance(value, str) else None
    if found is None:
        return None
    if path in _PRECISIONS:
        code, advice = _coded(SENT_AS_FIRST_DAY)
        return code, advice._replace(problem=advice.problem.format(found.first))
    return _coded(PART_OF_DATE) if path in DATE_FIELDS else None


def _on_identifier(name: str, value: object, *, sends_invalid: bool) -> tuple[str, Advice]:
    if not isinstance(value, str):
        return _coded(NO_TEXT if sends_invalid else NO_IDENTIFIER)
    invalid = next((found for found in STANDARD_KINDS.read(name, value) if found.verdict not in GOOD), None)
    return (code_of(invalid.rule), advice_of(invalid.rule, invalid.type)) if invalid else _coded(OTHER_FORM)


def _on_unknown(path: str, value: object) -> tuple[str, Advice]:
    """The text about a field that no rule names."""
    if _LINK.fullmatch(path):
        return _coded(NO_LINK)
    if path == "import_state":
        return _coded(DEPRECATED)
    if is_managed(path):
        return _coded(FILLED_BY_SERVICE)
    if _FIRST_NAME.fullmatch(path) is None:
        return _coded(UNKNOWN_PART)
    if not looks_like_identifier(path, value):
        return _coded(UNKNOWN_FIELD)
    table = f"[identifiers.{path.lower()}]" + ("" if path.islower() else f' with fields = ["{path}"]')
    code, advice = _coded(UNKNOWN_IDENTIFIER)
    return code, advice._replace(suggestion=advice.suggestion.format(table=table))
