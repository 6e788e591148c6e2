"""The examination of one tenant: the machine, then about a dozen requests to the service, then the checks of its responses."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.doctor import description, machine, service, storage
from pipelines.doctor.assumption_results import ServiceResponses
from pipelines.doctor.assumptions import check_assumptions
from pipelines.doctor.assumptions_about_lists import ASKED_FOR
from pipelines.doctor.assumptions_about_records import doi_for_search
from pipelines.doctor.connection import check_connection
from pipelines.doctor.findings import CheckResult, CheckStatus, failed, note
from pipelines.doctor.notifications import check_notifications
from pipelines.errors import BookferryError, ConfigurationError, SignInError
from pipelines.service.client import Waiting, open_client
from pipelines.service.clock import Clock, SystemClock
from pipelines.service.end_of_v2 import v2_has_ended
from pipelines.service.http.budget import Budget
from pipelines.service.probe import Probe, ProbeResponse
from pipelines.service.self_description import ask_description
from pipelines.service_limits import PER_PAGE
from pipelines.settings.credentials import BasicCredentials
from pipelines.settings.settings import Settings
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.store.stores import open_data

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_REQUESTS = 14
"""Most requests to one tenant, of the 60 a minute that all runs share (I1)."""

OWN_SCOPES = ("users", "tasks")
"""Resources of v3 with a scope of their own; the others need `library:read` (service.md#scopes)."""


@dataclass(frozen=True)
class Environment:
    """The surroundings: clock, environment variables, free bytes of a disk."""

    clock: Clock = field(default_factory=SystemClock)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free


@dataclass(frozen=True)
class Examination:
    """The results for one tenant, in the order of the output."""

    tenant: str
    findings: list[CheckResult]
    requests: int


def examine(
    settings: Settings,
    tenant: str,
    around: Environment | None = None,
    on_wait: Callable[[Waiting], None] = lambda _: None,
) -> Examination:
    """Examine one tenant. Never raises `BookferryError`.

    Changes nothing except the budget's count of requests, and the sign-in if it must be renewed.
    """
    around = around or Environment()
    data = open_data(settings)
    findings = [machine.configuration(settings, tenant), machine.secrets(settings, tenant, around.environ)]
    findings += [*([storage.bucket(data.objects)] if settings.bucket else [])]
    findings += [*_on_this_machine(data, tenant, around), *machine.postgres(settings, tenant)]
    findings += storage.iceberg(settings, around.environ)
    findings += [check_notifications(settings, tenant, around.environ)]
    if settings.tenant(tenant).api == "v3":
        findings += check_connection(settings, tenant, around.clock)
    blocked = [one.name for one in findings if one.status is CheckStatus.PROBLEM and one.name in _BLOCKING]
    if blocked or not data.path.is_dir():
        reason = " and ".join(blocked) or "disk"
        return Examination(
            tenant, [*findings, note("service", f"no request was sent: first solve the problem of {reason}")], 0
        )
    try:
        asked, requests = _at_the_service(settings, tenant, data, around, on_wait)
    except BookferryError as error:
        asked, requests = [failed("configuration" if isinstance(error, ConfigurationError) else "service", error)], 0
    return Examination(tenant, findings + asked, requests)


_BLOCKING = ("secrets", "database", "token")
"""Checks that must pass before any request: the service would refuse it, or the rate limit could not be kept."""


def _on_this_machine(data: DataFolder, tenant: str, around: Environment) -> list[CheckResult]:
    """Disk, database and snapshots."""
    try:
        snapshots = machine.newest_snapshots(data, tenant)
    except BookferryError as error:
        snapshots = machine.NewestSnapshots()
        backup = failed("last backup", error)
    else:
        backup = machine.last_backup(tenant, snapshots, around.clock.now())
    free = around.free_bytes(_existing(data.path))
    return [machine.disk(data, free, snapshots.complete or snapshots.newest), machine.database(data.state), backup]


def _existing(path: Path) -> Path:
    """The folder, or its nearest parent that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _at_the_service(
    settings: Settings, tenant: str, data: DataFolder, around: Environment, on_wait: Callable[[Waiting], None]
) -> tuple[list[CheckResult], int]:
    used = _used(settings, tenant, data)
    with open_client(settings, tenant, state=data.state, on_wait=on_wait) as client:
        probe = Probe(client, around.clock, MAX_REQUESTS)
        visit = _ServiceExamination(settings.tenant(tenant).api, _user(settings, tenant, around.environ), probe, around)
        findings = [*visit.findings(), machine.rate(settings, tenant, used)]
        return findings, probe.requests


def _used(settings: Settings, tenant: str, data: DataFolder) -> int:
    """Requests of other runs in the last minute, from the tenant's budget."""
    library, limit = settings.budget_of(tenant)
    with _closed(Budget(data.state, library, limit)) as budget:
        return budget.used()


def _user(settings: Settings, tenant: str, environ: Mapping[str, str]) -> str:
    """The account of v2's requests; empty if only the service knows it."""
    if settings.tenant(tenant).api != "v2":
        return ""
    credentials = settings.credentials(tenant, environ)
    return credentials.username if isinstance(credentials, BasicCredentials) else ""


@contextmanager
def _closed(budget: Budget) -> Iterator[Budget]:
    try:
        yield budget
    finally:
        budget.close()


class _ServiceExamination:
    """The requests to one service, in order; most are sent only if the first response has records."""

    def __init__(self, api: str, user: str, probe: Probe, around: Environment) -> None:
        self._api = api
        self._user = user
        self._probe = probe
        self._around = around
        self._answers: list[ProbeResponse] = []
        self._refused: ProbeResponse | None = None
        self._larger = True

    def findings(self) -> list[CheckResult]:
        """The results of the checks of the responses."""
        try:
            me = self._ask("users/me") if self._api == "v3" else None
            first = self._first_page()
        except BookferryError as error:
            return [failed("sign-in" if isinstance(error, SignInError) else "service", error)]
        trouble = self._probe.failures[-1] if self._probe.failures else None
        well = first is not None and first.records is not None
        ended, v3 = self._v2_has_ended(first) if first is not None and not well else (False, None)
        found = [service.reachable(first, trouble, v3)]
        if first is not None and found[0].status is CheckStatus.OK:
            found.append(service.sign_in(first, self._user or service.person(me)))
        found += [service.clock(self._answers)] if self._answers else []
        found += [service.end_of_v2(self._api, self._around.clock.now().date(), answers=well, ended=ended)]
        if first is None or not well:
            return found
        look = self._look(first)  # before the search for a description, which may need more requests
        return [*found, *self._beside(), *check_assumptions(look)]

    def _first_page(self) -> ProbeResponse | None:
        """The first page, requested larger than the service promises; it should return 50 (A20). If it refuses, a page like a backup's."""
        larger = self._ask("publications", page=1, per_page=ASKED_FOR)
        if larger is not None and (not larger.response.is_client_error or larger.status in service.REFUSALS):
            return larger
        self._refused, self._larger = larger, False
        return self._ask("publications", page=1, per_page=PER_PAGE)

    def _beside(self) -> list[CheckResult]:
        """The checks of other lists, the other version, and the description."""
        lists = OWN_SCOPES if self._api == "v3" else ()
        return [
            *(service.readable(name, self._ask(name, per_page=1)) for name in lists),
            *([service.lists_of_v2()] if self._api == "v2" else []),
            service.other_version(self._api, self._other_version()),
            description.compare(
                self._api, ask_description(self._probe, self._api, f"{self._around.clock.now():%Y-%m-%d}")
            ),
        ]

    def _v2_has_ended(self, first: ProbeResponse) -> tuple[bool, ProbeResponse | None]:
        """Whether version 2, whose first page has no records, has ended; and the response of version 3, if it was asked."""
        if self._api != "v2" or first.status in service.REFUSALS:
            return False, None
        v3 = self._other_version()
        described = self._probe.ask("swagger.yaml", signed_in=False) if first.status == HTTPStatus.NOT_FOUND else None
        description, other = (None if answer is None else answer.response for answer in (described, v3))
        return v2_has_ended(first.response, description, other, self._around.clock.now().date()), v3

    def _other_version(self) -> ProbeResponse | None:
        """The response of the version that this tenant does not use, without a sign-in."""
        other = {"v2": "v3", "v3": "v2"}[self._api]
        return self._probe.ask_at(f"{self._probe.base_url}/api/{other}/publications", signed_in=False, per_page=1)

    def _look(self, first: ProbeResponse) -> ServiceResponses:
        sought = doi_for_search(first)
        total = first.paging.total if first.paging is not None else None
        last = (total or 0) // PER_PAGE + 1
        return ServiceResponses(
            self._api,
            first,
            second=self._probe.ask_at(first.next_page) if first.next_page else None,
            everything=self._ask("publications/all", page=1, per_page=PER_PAGE),
            absent=self._ask("publications/0"),
            beyond=self._ask("publications", page=last + 1, per_page=PER_PAGE) if total is not None else None,
            found=self._ask("publications", doi=sought) if sought else None,
            refused=self._refused,
            larger=self._larger,
            sought=sought,
        )

    def _ask(self, path: str, **params: Any) -> ProbeResponse | None:
        answer = self._probe.ask(path, **params)
        self._answers += [answer] if answer is not None else []
        return answer
