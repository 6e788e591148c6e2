"""Words for librarians: the texts of the rules with the librarians' names of identifiers and fields in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipelines.records.identifiers.rules import RULES
from pipelines.records.identifiers.verdicts import REPAIRED


class Advice(NamedTuple):
    """A problem, and what to do about it."""

    problem: str
    suggestion: str


NAMES = {"doi": "DOI", "isbn": "ISBN", "issn": "ISSN", "arxiv_id": "arXiv identifier", "pmid": "PMID"}
"""Type → its common name."""

FIELDS = {
    "asset": "file",
    "authors": "authors",
    "publishable_type": "kind",
    "published_on": "date",
    "user_id": "user",
    "publication_id": "publication",
    "location_id": "location",
    "collection_ids": "collections",
    "parent_id": "belongs to",
}
"""Field of the service → the librarians' word for it, where that is another one."""

SOURCES = {
    "doi": "the publisher's page",
    "isbn": "the book: the back of its title page, or its cover",
    "issn": "the journal: its cover or its imprint",
    "arxiv_id": "the paper's page at arxiv.org",
    "pmid": "the record in PubMed",
}
"""Type → the place where the right identifier is printed."""

OTHER = "other"
"""Code of a rule from a later version of Bookferry."""

CODES = (*(rule.value for rule in RULES.values() if rule.label), REPAIRED, OTHER)
"""Every code of a line in the table of issues of a report, by which people filter: docs/reports.md. None is ever renamed."""

_UNEXPLAINED = Advice("This is not a valid {name}.", "Compare with {source}, and correct the {name}.")
"""For a rule from a later version of Bookferry."""


def incomplete_dates(partial: int, undated: int) -> str:
    """Part of a sentence on dates that are no day, with which report and plan say the same."""
    parts = [
        (partial, "only a year or a month, and version 3 takes only complete dates"),
        (undated, "no date"),
    ]
    return "; ".join(f"{count:,} {'is' if count == 1 else 'are'} {what}" for count, what in parts if count)


def name_of(kind: str) -> str:
    """The common name of an identifier of a type."""
    return NAMES.get(kind, kind or "identifier")


def field_name(field: str) -> str:
    """The librarians' word for a field of the service, or the field's own name."""
    name, blank, note = field.partition(" ")
    return (FIELDS.get(name) or NAMES.get(name) or name) + blank + note


def code_of(rule: str) -> str:
    """The code of a rule; of several rules, that of the last one, which the advice is about."""
    return last if (last := _last_of(rule)) in CODES else OTHER


def label_of(rule: str, kind: str) -> str:
    """The name of a rule in a list, after the name of the identifier: `ISBN: wrong check digit`."""
    label = RULES[rule].label if rule in RULES else rule.replace("_", " ")
    return f"{name_of(kind)}: {label}" if kind else label


def advice_of(rule: str, kind: str = "", *, many: str = "Several", ids: str = "them") -> Advice:
    """The advice on a value of a type, or on a record. `many` records look alike: `ids`."""
    explanation = RULES.get(_last_of(rule))
    words = {"name": name_of(kind), "source": SOURCES.get(kind, "the publication"), "many": many, "ids": ids}
    problem, suggestion = (explanation.sentence, explanation.to_do) if explanation else _UNEXPLAINED
    return Advice(problem.format(**words), suggestion.format(**words))


def _last_of(rule: str) -> str:
    return rule.rpartition("+")[2]


def advice_on_repair(rules: Sequence[str], becomes: str) -> Advice:
    """The text about a repaired field: what was unusual, and the new value `becomes`."""
    sentences = " ".join(RULES[rule].sentence for rule in rules if rule in RULES)
    return Advice(sentences, f"Nothing has to be done: it becomes {becomes}.")


def list_identifiers(values: Sequence[tuple[str, str]]) -> str:
    """The first five identifiers of a list, as part of a sentence: the ISBN 9780306406157 and the ISSN 0378-5955."""
    return words_and([f"the {name_of(kind)} {value}" for kind, value in values[:5]], len(values))


def words_and(words: list[str], of: int) -> str:
    """`1, 2 and 3`; `1, 2, 3 and 7 more` where these are the first of more."""
    parts = words if of <= len(words) else [*words, f"{of - len(words):,} more"]
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
