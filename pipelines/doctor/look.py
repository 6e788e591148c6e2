"""One look at a tenant: its settings, its machine, and what its library answers. Checks and `describe` read it.

A request is sent when its answer is needed for the first time, and only then. Together they are a dozen or two of the 60 a minute that all
runs share (I1).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

from pipelines.doctor.backup_age import NewestSnapshots, newest_snapshots
from pipelines.errors import BookferryError
from pipelines.inventory import LIST_PATHS
from pipelines.service.client import LibraryClient, Waiting, open_client
from pipelines.service.clock import Clock, SystemClock
from pipelines.service.probe import Probe, ProbeResponse
from pipelines.service.self_description import ask_description
from pipelines.service_limits import PER_PAGE
from pipelines.settings.settings import Settings
from pipelines.shapes.model import Description
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.store.stores import open_data

REFUSALS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
"""Statuses that concern the account, not the request."""


@dataclass(frozen=True)
class Environment:
    """The surroundings: clock, and free bytes of a disk."""

    clock: Clock = field(default_factory=SystemClock)
    free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free


class Look:
    """What is seen of one tenant. Changes nothing except the budget's count, and a sign-in that must be renewed."""

    def __init__(
        self,
        settings: Settings,
        tenant: str,
        around: Environment | None = None,
        on_wait: Callable[[Waiting], None] = lambda _: None,
    ) -> None:
        self.settings = settings
        self.tenant = tenant
        self.chosen = settings.tenant(tenant)
        self.api = self.chosen.api
        self.around = around or Environment()
        self.trouble: BookferryError | None = None
        """Why the last question without an answer had none."""
        self._asked: dict[tuple[Any, ...], ProbeResponse | None] = {}
        self._on_wait = on_wait
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @cached_property
    def data(self) -> DataFolder:
        """The data folder, or the bucket with its work folder."""
        return open_data(self.settings)

    @cached_property
    def snapshots(self) -> NewestSnapshots:
        """The newest snapshots of the tenant."""
        return newest_snapshots(self.data, self.tenant)

    @property
    def requests(self) -> int:
        """Requests that this look has sent."""
        return self.client.requests if "client" in self.__dict__ else 0

    @cached_property
    def client(self) -> LibraryClient:
        """The client of the library."""
        client = open_client(self.settings, self.tenant, state=self.data.state, on_wait=self._on_wait)
        return self._opened.enter_context(client)

    @cached_property
    def _probe(self) -> Probe:
        return Probe(self.client, self.around.clock)

    def ask(self, path: str, **params: Any) -> ProbeResponse | None:
        """The response to a GET below the tenant's version, or of a whole address; `None` if there is none, and `trouble` says why.

        The same question is sent once.
        """
        question = path, *params.items()
        if question not in self._asked:
            self._asked[question] = self._answer(path, params)
        return self._asked[question]

    def _answer(self, path: str, params: dict[str, Any]) -> ProbeResponse | None:
        try:
            address = path if "://" in path else f"{self._probe.api_url}/{path}"
            answer = self._probe.ask_at(address, **params)
        except BookferryError as error:
            self.trouble = error
            return None
        if answer is None and self._probe.failures:
            self.trouble = self._probe.failures[-1]
        return answer

    @property
    def answers(self) -> list[ProbeResponse]:
        """All responses so far."""
        return [answer for answer in self._asked.values() if answer is not None]

    def list_of(self, resource: str) -> ProbeResponse | None:
        """The first page of a resource's list."""
        return self.first if resource == "publications" else self.ask(LIST_PATHS[resource], page=1, per_page=PER_PAGE)

    @property
    def first(self) -> ProbeResponse | None:
        """The first page of the list that a backup walks: that of all publications where there is one."""
        every = self.ask("publications/all", page=1, per_page=PER_PAGE)
        is_missing = every is not None and every.records is None
        return self.ask("publications", page=1, per_page=PER_PAGE) if is_missing else every

    @property
    def second(self) -> ProbeResponse | None:
        """The page that it leads to."""
        return self.ask(self.page.next_page) if self.page.next_page else None

    @property
    def page(self) -> ProbeResponse:
        """The first page, for checks that need one. Raises `trouble` where there is none."""
        if self.first is None:
            raise self.trouble or BookferryError("No request was sent to the library.")
        return self.first

    @cached_property
    def description(self) -> Description:
        """What the library's `swagger.yaml` says (service.md#overview)."""
        return ask_description(self._probe, self.api)


def total_of(answer: ProbeResponse | None) -> int | None:
    """The number of records in the whole list that a page gives (X-Total)."""
    return answer.paging.total if answer is not None and answer.paging is not None else None
