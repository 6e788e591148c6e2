"""Assumptions about records: their fields and values (docs/assumptions.md, part two: records)."""

from __future__ import annotations

import re
from datetime import date
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pipelines.doctor.assumption_results import ServiceResponses, confirmed, differs, names_of, untested
from pipelines.doctor.findings import CheckResult
from pipelines.publication_fields import IDENTIFIER_FIELDS, IDENTIFIER_LIST, PUBLICATION_KEYS
from pipelines.service.probe import ProbeResponse
from pipelines.service.redaction import outside_text

_DOCUMENTED = PUBLICATION_KEYS | {"import_state"}


def unknown_fields(look: ServiceResponses) -> CheckResult:
    """A1: publications have the documented fields only."""
    known = {*_DOCUMENTED, *(IDENTIFIER_FIELDS if look.api == "v2" else (IDENTIFIER_LIST,))}
    unknown = {key for record in look.records for key in record} - known
    if not look.records:
        return untested("A1", "there are no records")
    if not unknown:
        return confirmed("A1", "publications have the documented fields only")
    return differs(
        "A1", f"publications have more fields: {names_of(unknown)}", "Backups keep them as residue; nothing is lost."
    )


def categories(look: ServiceResponses) -> CheckResult:
    """A23: categories are objects with `id` and `name` in answers."""
    entries = _entries(look, "categories")
    if not entries:
        return untested("A23", "no record of the first page has a category")
    if all(isinstance(one, dict) and {"id", "name"} <= set(one) for one in entries):
        return confirmed("A23", "categories are objects with id and name")
    return differs(
        "A23",
        "categories are not objects with id and name",
        "Backups also accept texts, and keep anything else as residue.",
    )


def identifiers(look: ServiceResponses) -> CheckResult:
    """A24, A25: v2 has flat fields, v3 a typed list."""
    name = "A24" if look.api == "v2" else "A25"
    if not look.records:
        return untested(name, "there are no records")
    if look.api == "v2":
        present = {field for record in look.records for field in IDENTIFIER_FIELDS if field in record}
        if "identifiers" not in look.records[0] and present:
            return confirmed(name, f"identifiers are flat fields: {names_of(present)}")
        return differs(
            name,
            "v2 does not show identifiers as flat fields",
            "Backups keep fields without a column as residue.",
            costs=True,
        )
    entries = _entries(look, "identifiers")
    if not entries and all("identifiers" in record for record in look.records):
        return untested(name, "no record of the first page has an identifier")
    if entries and all(isinstance(one, dict) and {"type", "value"} <= set(one) for one in entries):
        return confirmed(name, "identifiers are a list of objects with type and value")
    return differs(
        name,
        "v3 does not show identifiers as a typed list",
        "Backups keep fields without a column as residue.",
        costs=True,
    )


def _entries(look: ServiceResponses, field: str) -> list[Any]:
    lists = [record.get(field) for record in look.records]
    return [entry for one in lists if isinstance(one, list) for entry in one]


def nulls(look: ServiceResponses) -> CheckResult:
    """A26: a field without a value is there, and null."""
    keys = [set(record) for record in look.records]
    if len(keys) < 2:  # noqa: PLR2004
        return untested("A26", "there are fewer than two records")
    if all(one == keys[0] for one in keys) or any(
        value is None for record in look.records for value in record.values()
    ):
        return confirmed("A26", "fields without a value are there, and null")
    return differs("A26", "fields without a value are left out", "Backups treat null and absent alike.")


def import_state(look: ServiceResponses) -> CheckResult:
    """A28: `import_state` is in v2 and not in v3."""
    if not look.records:
        return untested("A28", "there are no records")
    there = any("import_state" in record for record in look.records)
    if there == (look.api == "v2"):
        return confirmed("A28", f"import_state is {'in the records of v2' if there else 'not in the records of v3'}")
    return differs(
        "A28", f"import_state is {'' if there else 'not '}in the records of {look.api}", "Backups keep it as residue."
    )


def deprecations(look: ServiceResponses) -> CheckResult:
    """A37: v2 names deprecated features in `X-API-Deprecation` (service.md#deprecation)."""
    sent = look.first.header("x-api-deprecation")
    if look.api == "v2" and not sent:
        return differs("A37", "v2 sends no X-API-Deprecation header with publications", "Nothing depends on it.")
    if look.api == "v3" and sent:
        return differs("A37", f"v3 sends X-API-Deprecation: {outside_text(sent, 100)}", "Nothing depends on it.")
    return confirmed(
        "A37", f"X-API-Deprecation is sent by v2: {outside_text(sent, 100)}" if sent else "v3 deprecates nothing"
    )


def file_addresses(look: ServiceResponses) -> CheckResult:
    """A27, A62: files come with an address to fetch them from, signed, on another origin."""
    assets = [one for one in _entries(look, "assets") if isinstance(one, dict)]
    if not assets:
        return untested("A62", "no record of the first page has a file")
    addresses = [one["url"] for one in assets if isinstance(one.get("url"), str)]
    if not addresses:
        return differs(
            "A62",
            "files have no address",
            "Their content cannot be fetched. Does the token have `assets:read`? `bookferry login` asks for it.",
            costs=True,
        )
    lives = parse_qs(urlsplit(addresses[0]).query).get("X-Amz-Expires", [""])[0]
    life = f", good for {int(lives[:9]):,} s" if lives.isascii() and lives.isdigit() else ""
    return confirmed("A62", f"files have an address to fetch them from{life}")


def days(look: ServiceResponses) -> CheckResult:
    """`published_on` is a date YYYY-MM-DD (service.md#publications). It has no number, because the service documents it."""
    values = [record.get("published_on") for record in look.records]
    given = [value for value in values if value not in (None, "")]
    odd = [value for value in given if not _is_day(value)]
    if not given:
        return untested("published_on", "no record of the first page has a date")
    if not odd:
        return confirmed("published_on", "is a day, YYYY-MM-DD")
    return differs(
        "published_on",
        f"{len(odd)} of {len(given)} values are no days, for example {outside_text(repr(odd[0]), 40)}",
        "Backups keep them as text beside an empty date.",
    )


def _is_day(value: object) -> bool:
    if not isinstance(value, str) or not re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII):
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def dois(record: dict[str, Any]) -> list[str]:
    """The DOIs of a record of either version."""
    flat = [record["doi"]] if isinstance(record.get("doi"), str) else []
    typed = record.get("identifiers")
    entries = typed if isinstance(typed, list) else []
    return flat + [
        one["value"]
        for one in entries
        if isinstance(one, dict) and str(one.get("type")).lower() == "doi" and isinstance(one.get("value"), str)
    ]


def doi_for_search(answer: ProbeResponse) -> str:
    """A DOI of the page for a search; empty if there is none."""
    found = (doi for record in answer.records or [] for doi in dois(record))
    return next((doi for doi in found if 0 < len(doi) <= 200 and doi.isprintable()), "")  # noqa: PLR2004
