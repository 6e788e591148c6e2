"""Whether a record that shows no files has none: a service may leave out an empty list, or show no files at all.

A publication has `assets`; the documentation does not say whether every response has that field (service.md#assets, service.md#not-shown).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.service.client import LibraryClient


class FileVisibility:
    """Finds out whether a library shows the files of its publications: once, and again when files were attached to others.

    `attached_to`: returns ids of some publications to which files were attached.
    """

    def __init__(self, client: LibraryClient, attached_to: Callable[[], list[int]]) -> None:
        self._client = client
        self._attached_to = attached_to
        self._visible = False
        self._asked: list[int] | None = None

    def shows_all(self, record: Mapping[str, Any]) -> bool:
        """Whether a record shows all its files; false where that is unknown."""
        if not self._visible:
            attached = self._attached_to()
            self._visible = _has_list(record) or (attached != self._asked and any(self._other_records_show(attached)))
            self._asked = attached
        return self._visible

    def _other_records_show(self, attached: Iterable[int]) -> Iterator[bool]:
        yield from map(_has_list, self._client.list_ends(PUBLICATIONS))
        for number in attached:
            record = self._client.find_record(f"{PUBLICATIONS}/{number}")
            yield record is not None and _has_list(record)


def _has_list(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("assets"), list)
