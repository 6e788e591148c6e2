"""Looks up what an unclear POST has made (I8): whether a record is there, and surely the one that was sent.

The result is one of three: it is there, it is certainly not, or nobody can tell. A search may lag behind (service.md#search), and so may a
listing: an empty result counts after a minute, or as soon as the ends of the plain listing show a record that was created later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipelines.errors import RefusedError
from pipelines.inventory import IDENTIFIER_FIELDS, IDENTIFIER_LIST
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.resource_types import PUBLICATIONS, ResourceType
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
"""Seconds before each look: a minute in all."""

UNDER_WAY = 3
"""Looks at least: a request that is still under way gets some seconds to arrive."""


@dataclass(frozen=True)
class Present:
    """The records that are what was sent, the oldest first; any of them may be it."""

    records: list[dict[str, Any]]


@dataclass(frozen=True)
class Ambiguous:
    """Records that may be it, and differ from what was sent: a person must look."""

    ids: list[int]


ABSENT = None
"""Certainly not there."""

LookupResult = Present | Ambiguous | None


class Lookup:
    """Looks for publications that were sent.

    `is_new`: which of some ids of a resource of the target nobody knew before and no other write accounts for. `created_after`: ids that
    other writes brought after a moment.
    """

    def __init__(
        self,
        client: LibraryClient,
        kinds: Kinds,
        is_new: Callable[[str, Iterable[int]], set[int]],
        created_after: Callable[[str, datetime], set[int]],
    ) -> None:
        self._client = client
        self._clock = client.clock
        self._kinds = kinds
        self._is_new = is_new
        self._created_after = created_after

    def publication(
        self,
        payload: Mapping[str, Any],
        expected: Mapping[str, str | None],
        *,
        sent_at: datetime,
        looks: int = len(PAUSES),
    ) -> LookupResult:
        """What became of a publication that was sent. `expected`: field → digest of all that is compared."""
        sent = form_of(payload, self._kinds)
        keys, title = set(identifying_keys(sent, self._kinds)), fingerprint(sent.fields)
        alike: list[dict[str, Any]] = []
        doubtful: list[int] = []
        for look, pause in self._looks(sent_at)[:looks]:
            if pause:
                self._clock.sleep(pause)
            seen = {number: record for record in self._around(payload) if (number := whole_number(record.get("id")))}
            exact, alike, doubtful = [], [], []
            for number in sorted(self._is_new(PUBLICATIONS, seen)):
                form = form_of(seen[number], self._kinds)
                shown = comparable(form.fields, self._kinds)
                if all(digest(shown.get(name)) == value for name, value in expected.items()):
                    exact.append(seen[number])
                elif self._is_alike(sent.fields, form.fields):
                    alike.append(seen[number])
                elif (
                    keys.intersection(identifying_keys(form, self._kinds))
                    or (title is not None and fingerprint(form.fields) == title)
                    or same_title(sent.fields, form.fields)
                ):
                    doubtful.append(number)
            if exact:
                return Present(exact)
            newer = self._created_after(PUBLICATIONS, sent_at)
            if look >= UNDER_WAY and (alike or doubtful or not seen.keys().isdisjoint(newer)):
                break  # by now what others write at the same time is accounted for
        if alike:
            return Present(alike)
        return Ambiguous(doubtful) if doubtful else ABSENT

    def _is_alike(self, sent: Mapping[str, Any], shown: Mapping[str, Any]) -> bool:
        """Whether a record is what was sent but for blanks, and for a kind of publication where none was sent: services set such."""
        one, other = (comparable(with_plain_blanks(fields), self._kinds) for fields in (sent, shown))
        return not [name for name in differing(one, other) if name != "publishable_type" or name in one]

    def other(
        self,
        other: ResourceType,
        payload: Mapping[str, Any],
        expected: Mapping[str, str | None],
        *,
        sent_at: datetime,
        looks: int = len(PAUSES),
    ) -> LookupResult:
        """What became of a record of another resource that was sent: nobody shows a search there, so the ends of its list tell."""
        key = other.key(payload)
        for look, pause in self._looks(sent_at)[:looks]:
            if pause:
                self._clock.sleep(pause)
            listed = self._client.list_ends(other.resource)
            seen = {number: record for record in listed if (number := whole_number(record.get("id")))}
            exact, doubtful = [], []
            for number in sorted(self._is_new(other.resource, seen)):
                values = other.values(seen[number])
                shown = other.compared(values)
                if all(digest(shown.get(name)) == value for name, value in expected.items()):
                    exact.append(seen[number])
                elif key is not None and other.key(values) == key:
                    doubtful.append(number)
            if exact:
                return Present(exact)
            if doubtful:
                return Ambiguous(doubtful)
            if look >= UNDER_WAY and not seen.keys().isdisjoint(self._created_after(other.resource, sent_at)):
                break
        return ABSENT

    def _looks(self, sent_at: datetime) -> list[tuple[int, float]]:
        """Number and pause of each look that is left: one at once, then those whose time has not come since it was sent."""
        passed, due, first, coming = (self._clock.now() - sent_at).total_seconds(), 0.0, 1, list[tuple[int, float]]()
        for number, pause in enumerate(PAUSES, 1):
            due += pause
            if due <= passed:
                first = number
            elif number > 1:
                coming.append((number, min(pause, due - passed)))
        return [(first, 0.0), *coming]

    def _around(self, payload: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Records that the service finds by what identifies the one that was sent, and those at both ends of its list."""
        for criteria in _criteria(payload):
            try:
                yield from self._client.search(criteria).records
            except RefusedError:  # a value that it does not search for; the ends of the list are left
                continue
        yield from self._client.list_ends(PUBLICATIONS)


def _criteria(payload: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Flat query parameters (service.md#search); title and year where there is no identifier."""
    flat: dict[str, str] = {}
    for one in payload.get(IDENTIFIER_LIST) or ():
        if one["type"] in IDENTIFIER_FIELDS and one["type"] != "issn":  # of a journal: half the library
            flat.setdefault(one["type"], one["value"])
    for kind, value in list(flat.items())[:2]:
        yield {kind: value}
    title, published = payload.get("title"), payload.get("published_on")
    if not flat and title:
        yield {"query": title} | ({"year": published[:4]} if published else {})
