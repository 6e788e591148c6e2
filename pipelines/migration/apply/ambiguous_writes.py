"""Finds out whether a POST with a lost response created its record (I8).

The record is looked up. It is there, it is certainly not there, or that stays unknown. At first an empty lookup is no proof, because
searches and listings may lag behind (service.md#search). It counts after a minute, or once the ends of the listing have a later record.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipelines.errors import RefusedError
from pipelines.migration.apply.digests import RecordDigests
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.journal import FailedWriteError, Journal
from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.resource_types import PUBLICATIONS, RESOURCE_TYPES, ResourceType
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

PAUSES = (0.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds before each lookup: a minute in all."""

MIN_LOOKUPS = 3
"""Lookups at least: a request that is still under way gets some seconds to arrive."""


@dataclass(frozen=True)
class Present:
    """Records that equal the one that was sent, the oldest first."""

    records: list[dict[str, Any]]


@dataclass(frozen=True)
class Ambiguous:
    """Records that may be the one that was sent, but differ from it: a person must look."""

    ids: list[int]


ABSENT = None
"""Certainly not there."""

LookupResult = Present | Ambiguous | None


class AmbiguousCreates:
    """Settles creates with a lost response: adopts the record that one created, or parks its journal entry for a person.

    `known_before`: returns those ids of a resource that were in the target when the plan was made. Several threads may call it.
    """

    def __init__(
        self,
        client: LibraryClient,
        kinds: Kinds,
        journal: Journal,
        digests: RecordDigests,
        known_before: Callable[[str, Collection[int]], set[int]],
    ) -> None:
        self._journal = journal
        self._digests = digests
        self._known_before = known_before
        self._lookup = Lookup(client, kinds, self._new_ids, journal.created_after)
        self._adoption_lock = threading.Lock()

    def find(
        self, row: PlanRow, number: int, content: str, sent_at: datetime, *, lookups: int = len(PAUSES)
    ) -> dict[str, Any] | None:
        """Returns the record that a POST created, and enters it as done; None where it created none.

        `number`: its journal entry. `content`: digest of what was sent. Raises `FailedWriteError` where the result stays unknown; the
        entry is parked then.
        """
        result = self._look_up(row, sent_at, lookups)
        if result is None:
            return None
        with self._adoption_lock:  # of records that were sent with the same content, each adopts another one
            if isinstance(result, Ambiguous):
                ids, reason = result.ids, "which differ from it"
            else:
                records = {record["id"]: record for record in result.records}
                free = sorted(self._new_ids(row.resource, records))
                if free and len(free) <= self._journal.count_twins(row.resource, content):
                    record = records[free[0]]
                    digests = self._digests.of_response(row.resource, record, row.expected)
                    self._journal.done(number, target_id=free[0], held=digests)
                    return record
                ids, reason = sorted(records), "more than were sent"
        message = (
            f"It is unknown whether it was created: the response was lost, and the target now has {', '.join(map(str, ids[:5]))}, "
            f"{reason}. A person must look: delete there what is superfluous, then apply the plan again."
        )
        self._journal.parked(number, message)
        raise FailedWriteError(message)

    def _look_up(self, row: PlanRow, sent_at: datetime, lookups: int) -> LookupResult:
        if resource_type := RESOURCE_TYPES.get(row.resource):
            return self._lookup.other_resource(
                resource_type, row.payload, row.expected, sent_at=sent_at, lookups=lookups
            )
        return self._lookup.publication(row.payload, row.expected, sent_at=sent_at, lookups=lookups)

    def _new_ids(self, resource: str, ids: Iterable[int]) -> set[int]:
        """Returns those ids that were not in the target when the plan was made and that no other write accounts for."""
        wanted = set(ids)
        return (
            wanted - self._known_before(resource, wanted) - self._journal.known_ids(resource, wanted)
            if wanted
            else wanted
        )


class Lookup:
    """Looks up records that were sent, again and again for up to a minute.

    `new_ids`: returns those ids of a resource that were not in the target before and that no other write accounts for. `created_after`:
    returns ids that other writes created after a moment.
    """

    def __init__(
        self,
        client: LibraryClient,
        kinds: Kinds,
        new_ids: Callable[[str, Iterable[int]], set[int]],
        created_after: Callable[[str, datetime], set[int]],
    ) -> None:
        self._client = client
        self._clock = client.clock
        self._kinds = kinds
        self._new_ids = new_ids
        self._created_after = created_after

    def publication(
        self,
        payload: Mapping[str, Any],
        expected: Mapping[str, str | None],
        *,
        sent_at: datetime,
        lookups: int = len(PAUSES),
    ) -> LookupResult:
        """Looks up whether a POST created the publication. `expected`: field → digest, for every field that is compared."""
        sent = form_of(payload, self._kinds)
        keys, title = set(identifying_keys(sent, self._kinds)), fingerprint(sent.fields)
        alike: list[dict[str, Any]] = []
        doubtful: list[int] = []
        for lookup, pause in self._schedule(sent_at)[:lookups]:
            if pause:
                self._clock.sleep(pause)
            found = {number: record for record in self._search(payload) if (number := whole_number(record.get("id")))}
            exact, alike, doubtful = [], [], []
            for number in sorted(self._new_ids(PUBLICATIONS, found)):
                form = form_of(found[number], self._kinds)
                compared = comparable(form.fields, self._kinds)
                if all(digest(compared.get(name)) == value for name, value in expected.items()):
                    exact.append(found[number])
                elif self._is_alike(sent.fields, form.fields):
                    alike.append(found[number])
                elif (
                    keys.intersection(identifying_keys(form, self._kinds))
                    or (title is not None and fingerprint(form.fields) == title)
                    or same_title(sent.fields, form.fields)
                ):
                    doubtful.append(number)
            if exact:
                return Present(exact)
            newer = self._created_after(PUBLICATIONS, sent_at)
            if lookup >= MIN_LOOKUPS and (alike or doubtful or not found.keys().isdisjoint(newer)):
                break  # by now the journal has the records that other threads created meanwhile
        if alike:
            return Present(alike)
        return Ambiguous(doubtful) if doubtful else ABSENT

    def _is_alike(self, sent: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
        """Whether two records differ in nothing but blanks, and a publication kind where none was sent: services set one."""
        wanted, actual = (comparable(with_plain_blanks(fields), self._kinds) for fields in (sent, found))
        return not [name for name in differing(wanted, actual) if name != "publishable_type" or name in wanted]

    def other_resource(
        self,
        resource_type: ResourceType,
        payload: Mapping[str, Any],
        expected: Mapping[str, str | None],
        *,
        sent_at: datetime,
        lookups: int = len(PAUSES),
    ) -> LookupResult:
        """Looks up whether a POST created a record of another resource: at the ends of its list, since no search is documented."""
        resource, key = resource_type.resource, resource_type.key(payload)
        for lookup, pause in self._schedule(sent_at)[:lookups]:
            if pause:
                self._clock.sleep(pause)
            listed = self._client.list_ends(resource)
            found = {number: record for record in listed if (number := whole_number(record.get("id")))}
            exact, doubtful = [], []
            for number in sorted(self._new_ids(resource, found)):
                values = resource_type.values(found[number])
                compared = resource_type.compared(values)
                if all(digest(compared.get(name)) == value for name, value in expected.items()):
                    exact.append(found[number])
                elif key is not None and resource_type.key(values) == key:
                    doubtful.append(number)
            if exact:
                return Present(exact)
            if doubtful:
                return Ambiguous(doubtful)
            if lookup >= MIN_LOOKUPS and not found.keys().isdisjoint(self._created_after(resource, sent_at)):
                break
        return ABSENT

    def _schedule(self, sent_at: datetime) -> list[tuple[int, float]]:
        """Number of each remaining lookup and seconds to wait before it: one at once, then those that are due later."""
        passed, due, first, coming = (self._clock.now() - sent_at).total_seconds(), 0.0, 1, list[tuple[int, float]]()
        for number, pause in enumerate(PAUSES, 1):
            due += pause
            if due <= passed:
                first = number
            elif number > 1:
                coming.append((number, min(pause, due - passed)))
        return [(first, 0.0), *coming]

    def _search(self, payload: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yields the publications that the service finds for a payload, and those at both ends of its list."""
        for criteria in _criteria(payload):
            try:
                yield from self._client.search(criteria).records
            except RefusedError:  # the service does not search for this value; the ends of the list remain
                continue
        yield from self._client.list_ends(PUBLICATIONS)


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
