"""Finds out whether a POST with a lost response created its record (I8).

The record is looked up. It is there, it is certainly not there, or that stays unknown. An empty lookup proves nothing while the request may
still take effect (`late_effects.py`), and newer records of our own do not either: only a lookup that began later is *final*.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.errors import RefusedError
from pipelines.migration.apply.digests import RecordDigests, has_most
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import FailedWriteError, JournalEntry, was_accepted
from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.resource_types import PUBLICATIONS, ResourceType
from pipelines.publication_fields import IDENTIFIER_FIELDS, IDENTIFIER_LIST
from pipelines.records.forms import form_of
from pipelines.records.identifiers.kinds import Kinds
from pipelines.records.matching import (
    comparable,
    differing,
    fingerprint,
    identifying_keys,
    same_title,
    with_plain_blanks,
)
from pipelines.records.values import whole_number
from pipelines.service.client import LibraryClient

PAUSES = (0.0, 2.0, 4.0)
"""Seconds before each final lookup, while only records that differ are found: those of other threads are in the journal by then."""


@dataclass(frozen=True)
class Present:
    """Records that equal the one that was sent, the oldest first."""

    records: list[dict[str, Any]]


@dataclass(frozen=True)
class Ambiguous:
    """Records that may be the one that was sent, but differ from it or have an id that is no number: a person must look."""

    ids: list[int | str]


ABSENT = None
"""Certainly not there."""

LookupResult = Present | Ambiguous | None

ReachesBack = Callable[[Sequence[Mapping[str, Any]]], bool]
"""Whether a page of a list has a record that is certainly older than the one that is looked for."""


class AmbiguousCreates:
    """Settles creates with a lost response: adopts the record that one created, or parks its journal entry for a person.

    `known_before`: returns those ids of a resource that were in the target when the plan was made. `may_be_empty`: whether the service may
    have made an empty record of what was sent. Several threads may call it.
    """

    def __init__(
        self,
        client: LibraryClient,
        kinds: Kinds,
        journal: Journal,
        digests: RecordDigests,
        known_before: Callable[[str, Collection[int]], set[int]],
        *,
        may_be_empty: Callable[[PlanRow], bool] = lambda _: False,
    ) -> None:
        self._may_be_empty = may_be_empty
        self._journal = journal
        self._digests = digests
        self._known_before = known_before
        self._lookup = Lookup(client, kinds, self._new_ids)
        self._adoption_lock = threading.Lock()

    def find(self, row: PlanRow, entry: JournalEntry, *, final: bool) -> dict[str, Any] | None:
        """Returns the record that a POST created, and enters it as done; None where it created none, or none yet.

        `final`: whether the request can take no effect any more. Raises `FailedWriteError` where the result stays unknown then; the entry
        is parked. Before that, only a record is adopted that no other write can have created.
        """
        result = self._look_up(row, entry, final=final)
        if result is None:
            return None
        with self._adoption_lock:  # of records that were sent with the same content, each adopts another one
            if isinstance(result, Ambiguous):
                ids, reason = result.ids, "which differ from it"
                if any(isinstance(number, str) for number in ids):
                    reason = "and an id that is no number does not say which of them it is"
            else:
                records = {int(record["id"]): record for record in result.records}
                free = sorted(self._new_ids(row.resource, records))
                senders = max(1, self._journal.count_twins(row.resource, entry.content or ""))
                if not free or (not final and senders > 1):
                    return None
                if len(free) <= senders or entry.repeated:
                    record = records[free[0]]
                    digests = self._digests.of_response(row, record, row.expected)
                    incomplete = self._digests.not_kept(row, record, row.expected, digests, ())
                    self._journal.done(entry.number, target_id=free[0], held=digests, message=incomplete)
                    return record
                if not final:
                    return None
                ids, reason = [*sorted(records)], "more than were sent"
        lost = "its answer did not name it" if was_accepted(entry) else "the response was lost"
        message = (
            f"It is unknown whether it was created: {lost}, and the target now has {', '.join(map(str, ids[:5]))}, "
            f"{reason}. A person must look: if one of them is it, plan again, and the new plan compares the two; if not, delete there what "
            "is superfluous, then apply this plan again."
        )
        self._journal.parked(entry.number, message)
        raise FailedWriteError(message)

    def _look_up(self, row: PlanRow, entry: JournalEntry, *, final: bool) -> LookupResult:
        expected = entry.wanted or row.expected  # without the references that were left out, if any

        def reaches_back(page: Sequence[Mapping[str, Any]]) -> bool:
            ids = {number for record in page if (number := whole_number(record.get("id"))) is not None}
            older = self._known_before(row.resource, ids) if ids else ids
            return bool(older or self._journal.created_before(row.resource, ids, entry.begun_at))

        if row.type is not None:
            or_empty = self._may_be_empty(row)
            return self._lookup.other_resource(
                row.type, row.payload, expected, reaches_back, final=final, or_empty=or_empty
            )
        return self._lookup.publication(row.payload, expected, reaches_back, final=final)

    def _new_ids(self, resource: str, ids: Iterable[int]) -> set[int]:
        """Returns those ids that were not in the target when the plan was made and that no other write accounts for."""
        new = set(ids)
        return new - self._known_before(resource, new) - self._journal.known_ids(resource, new) if new else new


class Lookup:
    """Looks up records that were sent.

    `new_ids`: returns those ids of a resource that were not in the target before and that no other write accounts for.
    """

    def __init__(
        self,
        client: LibraryClient,
        kinds: Kinds,
        new_ids: Callable[[str, Iterable[int]], set[int]],
    ) -> None:
        self._client = client
        self._clock = client.clock
        self._kinds = kinds
        self._new_ids = new_ids

    def publication(
        self,
        payload: Mapping[str, Any],
        expected: Mapping[str, str | None],
        reaches_back: ReachesBack = lambda _: True,
        *,
        final: bool,
    ) -> LookupResult:
        """Looks up whether a POST created the publication. `expected`: field → digest, for every field that is compared.

        `reaches_back`: whether a page of the list has a record that is older than the request. Without `final` only an exact record counts.
        """
        sent = form_of(payload, self._kinds)
        keys, title = set(identifying_keys(sent, self._kinds)), fingerprint(sent.fields)
        alike: list[dict[str, Any]] = []
        doubtful: list[int | str] = []
        for pause in PAUSES if final else PAUSES[:1]:
            if pause:
                self._clock.sleep(pause)
            exact, alike, doubtful = [], [], []
            for number, record in self._new_records(PUBLICATIONS, self._search(payload, reaches_back)):
                form = form_of(record, self._kinds)
                compared = comparable(form.fields, self._kinds)
                if isinstance(number, int) and _equals(compared, expected):
                    exact.append(record)
                elif isinstance(number, int) and self._is_alike(sent.fields, form.fields):
                    alike.append(record)
                elif (
                    keys.intersection(identifying_keys(form, self._kinds))
                    or (title is not None and fingerprint(form.fields) == title)
                    or same_title(sent.fields, form.fields)
                ):
                    doubtful.append(number)
            if exact:
                return Present(exact)
            if not alike and not doubtful:
                return ABSENT
        if not final:
            return ABSENT
        return Present(alike) if alike else Ambiguous(doubtful)

    def _is_alike(self, sent: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
        """Whether two records differ in nothing but blanks, and in what services set or drop.

        They set a publication kind where none was sent, and any additional field; they may drop an additional field that was sent.
        """
        wanted, actual = (comparable(with_plain_blanks(fields), self._kinds) for fields in (sent, found))
        for name in differing(wanted, actual):
            if name not in self._kinds.additional:
                if name != "publishable_type" or name in wanted:
                    return False
            elif name in wanted and name in actual:
                return False
        return True

    def other_resource(
        self,
        resource_type: ResourceType,
        payload: Mapping[str, Any],
        expected: Mapping[str, str | None],
        reaches_back: ReachesBack = lambda _: True,
        *,
        final: bool,
        or_empty: bool = False,
    ) -> LookupResult:
        """Looks up whether a POST created a record of another resource: at the ends of its list, since no search is documented.

        `or_empty`: a new record that has less than half of what was sent may be it, too.
        """
        resource, key = resource_type.resource, resource_type.key(resource_type.values(payload))
        doubtful: list[int | str] = []
        for pause in PAUSES if final else PAUSES[:1]:
            if pause:
                self._clock.sleep(pause)
            exact, doubtful = [], []
            for number, record in self._new_records(resource, self._client.list_ends(resource, reaches_back)):
                values = resource_type.values(record)
                compared = resource_type.compared(values)
                is_equal = _equals(compared, expected)
                if is_equal and isinstance(number, int):
                    exact.append(record)
                elif (
                    is_equal
                    or (key is not None and resource_type.key(values) == key)
                    or (or_empty and not has_most({name: digest(value) for name, value in compared.items()}, expected))
                ):
                    doubtful.append(number)
            if exact:
                return Present(exact)
            if not doubtful:
                return ABSENT
        return Ambiguous(doubtful) if final else ABSENT

    def _new_records(
        self, resource: str, records: Iterable[dict[str, Any]]
    ) -> Iterator[tuple[int | str, dict[str, Any]]]:
        """Yield the records that may be new, with their ids; those with an id that is no number last, because no plan knows these."""
        by_id = {whole_number(record.get("id")) or str(record.get("id")): record for record in records}
        for number in sorted(self._new_ids(resource, [key for key in by_id if isinstance(key, int)])):
            yield number, by_id[number]
        yield from ((key, record) for key, record in by_id.items() if isinstance(key, str))

    def _search(self, payload: Mapping[str, Any], reaches_back: ReachesBack) -> Iterator[dict[str, Any]]:
        """Yields the publications that the service finds for a payload, and those at both ends of its list."""
        for criteria in _criteria(payload):
            try:
                yield from self._client.search(criteria).records
            except RefusedError:  # the service does not search for this value; the ends of the list remain
                continue
        yield from self._client.list_ends(PUBLICATIONS, reaches_back)


def _equals(compared: Mapping[str, str], expected: Mapping[str, str | None]) -> bool:
    return all(digest(compared.get(name)) == value for name, value in expected.items())


def _criteria(payload: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Up to two identifiers, each a search of its own (service.md#search); title and year where there is no identifier."""
    flat: dict[str, str] = {}
    for identifier in payload.get(IDENTIFIER_LIST) or ():
        if (
            identifier["type"] in IDENTIFIER_FIELDS and identifier["type"] != "issn"
        ):  # names a journal with all its articles
            flat.setdefault(identifier["type"], identifier["value"])
    for kind, value in list(flat.items())[:2]:
        yield {kind: value}
    title, published = payload.get("title"), payload.get("published_on")
    if not flat and title:
        yield {"query": title} | ({"year": published[:4]} if published else {})
