"""Publications as a resource: documented fields and identifiers, fields that a plan has learned, and files."""

# ruff: noqa: D102  the class that it extends says what each is

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Self

import msgspec

from pipelines.migration.model.comparable import CONTENT, Form
from pipelines.migration.model.resource_types import (
    PUBLICATIONS,
    USERS,
    ResourceType,
    Stage,
    content_digest,
    without_signed_addresses,
)
from pipelines.publication_fields import DATE_FIELDS, IDENTIFIER_LIST, REFERENCES, WRITTEN
from pipelines.records.additional_fields import is_sent_empty
from pipelines.records.forms import form_of
from pipelines.records.identifiers.kinds import Kinds
from pipelines.records.identifiers.typed_identifiers import count_left_out
from pipelines.records.identifiers.verdicts import GOOD
from pipelines.records.matching import (
    comparable,
    differing,
    fingerprint,
    identifying,
    identifying_keys,
    same_title,
    with_plain_blanks,
)
from pipelines.records.residue import without_addresses
from pipelines.records.values import compact_json

IDENTIFIER = "identifier"
STAGES = (
    Stage(IDENTIFIER, IDENTIFIER),
    Stage(CONTENT, CONTENT, gives_way=True),
    Stage("fingerprint", "fingerprint", gives_way=True),
)
_CONTENT = [name for name in sorted(WRITTEN) if name not in REFERENCES]
_FILES = frozenset({"cover", "assets"})
_DOCUMENTED = {"contributor": USERS, "organization": "organizations"}


class PublicationType(ResourceType, frozen=True):
    """How publications are moved. Made by `publication_type`; a plan stores what it is made from."""

    kinds: Kinds = Kinds()
    verdicts: AbstractSet[str] = GOOD
    """Verdicts of the identifiers that are sent."""
    first_day: bool = False
    """A date that is only a year or a month is sent as its first day."""

    @property
    def has_files(self) -> bool:
        return True

    @property
    def stages(self) -> tuple[Stage, ...]:
        return STAGES

    @property
    def key_fields(self) -> frozenset[str]:
        return frozenset()

    @property
    def dates(self) -> tuple[str, ...]:
        return DATE_FIELDS

    @property
    def documented(self) -> bool:
        return True

    @property
    def undocumented(self) -> frozenset[str]:
        return frozenset(self.kinds.additional)

    @property
    def filled(self) -> frozenset[str]:
        return frozenset({*REFERENCES, *self.kinds.additional})

    @property
    def needs_references(self) -> bool:
        return False

    @property
    def of_target(self) -> Self:
        additional = {name: rule.of_target for name, rule in self.kinds.additional.items()}
        return msgspec.structs.replace(self, kinds=self.kinds.with_additional(additional), first_day=False)

    def form(self, record: Mapping[str, Any]) -> Form:
        form = form_of(
            {name: value for name, value in record.items() if name not in _FILES},
            self.kinds,
            self.verdicts,
            first_day=self.first_day,
        )
        unsent = without_signed_addresses(form.unsent)
        return Form(form.fields, unsent, self.empty_values(record), count_left_out(form.identifiers, self.verdicts))

    def empty_values(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Of the additional fields only. A link is empty only as a list."""
        return {
            name: record[name]
            for name, rule in self.kinds.additional.items()
            if is_sent_empty(record.get(name))
            and (record[name] == [] or not rule.leads_to)
            and rule.takes(record[name])
        }

    def files(self, record: Mapping[str, Any]) -> str | None:
        cover, assets = record.get("cover"), record.get("assets")
        if cover is None and not assets:
            return None
        return compact_json(without_addresses({"id": record.get("id"), "cover": cover, "assets": assets}))

    def match_keys(self, values: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        entries = values.get(IDENTIFIER_LIST, ())
        identifiers = (found for entry in entries for found in self.kinds.read(entry["type"], entry["value"]))
        for kind, value in identifying(values, identifiers, self.kinds):
            yield IDENTIFIER, kind, value
        if (text := fingerprint(values)) is not None:
            yield "fingerprint", "fingerprint", text

    def compared(self, values: Mapping[str, Any]) -> dict[str, str]:
        texts = comparable(values, self.kinds)
        for name in self.references:
            if isinstance(entries := values.get(name), list):
                texts[name] = f"[{','.join(sorted(map(compact_json, entries)))}]"
        return texts

    def compared_record(self, record: Mapping[str, Any]) -> dict[str, str]:
        return self.compared(form_of(record, self.kinds).fields)

    def content(self, compared: Mapping[str, str]) -> str:
        return content_digest(compared, _CONTENT)

    def planned(self, name: str, value: Any) -> Any:
        rule = self.kinds.additional.get(name)
        return rule.sent(value) if rule is not None and rule.leads_to else value

    def sent(self, _name: str, value: Any) -> Any:
        return value

    def reference_form(self, name: str, entries: list[Any]) -> dict[str, Any]:  # noqa: ARG002
        rule = self.kinds.additional.get(name)
        return {"as_object": True} if rule is None else {"as_object": rule.as_object, "as_text": rule.as_text}

    def unsent_references(self, name: str, missing: Mapping[int, Any], *, many: bool) -> dict[str, Any]:
        entries = list(missing.values())
        return {name: entries if many else entries[0]} if entries else {}

    def is_alike(self, sent: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
        """They set a publication kind where none was sent, and any additional field; they may drop an additional field that was sent."""
        forms = (form_of(record, self.kinds).fields for record in (sent, made))
        wanted, actual = (comparable(with_plain_blanks(fields), self.kinds) for fields in forms)
        for name in differing(wanted, actual):
            if name not in self.kinds.additional:
                if name != "publishable_type" or name in wanted:
                    return False
            elif name in wanted and name in actual:
                return False
        return True

    def may_be(self, sent: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
        """It has an identifier or the title of what was sent."""
        wanted, actual = form_of(sent, self.kinds), form_of(made, self.kinds)
        title = fingerprint(wanted.fields)
        return (
            not {*identifying_keys(wanted, self.kinds)}.isdisjoint(identifying_keys(actual, self.kinds))
            or (title is not None and fingerprint(actual.fields) == title)
            or same_title(wanted.fields, actual.fields)
        )

    def title(self, values: Mapping[str, Any]) -> str | None:
        return values.get("title")


def publication_type(
    kinds: Kinds, sent: Collection[str] = GOOD, *, first_day: bool = False, unproved: Collection[str] = ()
) -> PublicationType:
    """How publications are moved, with the additional fields of `kinds`."""
    links = {name: rule.leads_to for name, rule in kinds.additional.items() if rule.leads_to}
    return PublicationType(
        PUBLICATIONS,
        fields=(*WRITTEN, *kinds.additional),
        keys=(),
        references={**_DOCUMENTED, **links},
        lists=(IDENTIFIER_LIST, "categories"),
        unproved=tuple(unproved),
        kinds=kinds,
        verdicts=frozenset(sent),
        first_day=first_day,
    )
