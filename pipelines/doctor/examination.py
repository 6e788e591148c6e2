"""Examines one tenant: first this machine, then a dozen requests to the service and the meaning of the responses."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipelines.doctor import description, machine, service, storage
from pipelines.doctor.assumption_results import ServiceResponses
from pipelines.doctor.assumptions import check_assumptions
from pipelines.doctor.assumptions_about_lists import ASKED_FOR
from pipelines.doctor.assumptions_about_records import doi_to_seek
from pipelines.doctor.connection import check_connection
from pipelines.doctor.findings import CheckResult, CheckStatus, failed, note
from pipelines.doctor.notifications import check_notifications
from pipelines.errors import BookferryError, ConfigurationError, SignInError
from pipelines.service.client import Waiting, open_client
from pipelines.service.clock import Clock, SystemClock
from pipelines.service.http.budget import Budget
from pipelines.service.probe import Probe, ProbeResponse
from pipelines.service_limits import PER_PAGE
from pipelines.settings.credentials import BasicCredentials
from pipelines.settings.settings import Settings
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.store.stores import open_data

MAX_REQUESTS = 14
"""The most requests for one tenant, of the 60 a minute that all runs share (I1)."""

OWN_SCOPES = ("users", "tasks")
"""Resources of v3 that need a scope of their own; the rest goes by `library:read`."""


@dataclass(frozen=True)
class Environment:
    """The surroundings of an examination: clock, environment variables, free disk space."""

    clock: Clock = field(default_factory=SystemClock)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free


@dataclass(frozen=True)
class Examination:
    """The results for one tenant, in the order in which people read them."""

    tenant: str
    findings: list[CheckResult]
    requests: int


def examine(
    settings: Settings,
    tenant: str,
    environment: Environment | None = None,
    on_wait: Callable[[Waiting], None] = lambda _: None,
) -> Examination:
    """Examine one tenant. Never raises `BookferryError`.

    Changes only the budget's record of requests, and the sign-in if it must be renewed.
    """
    environment = environment or Environment()
    data = open_data(settings)
    findings = [machine.configuration(settings, tenant), machine.secrets(settings, tenant, environment.environ)]
    findings += [storage.bucket(data.objects)] if settings.bucket else []
    findings += [*_on_this_machine(data, tenant, environment), *machine.postgres(settings, tenant)]
    findings += [check_notifications(settings, tenant, environment.environ)]
    if settings.tenant(tenant).api == "v3":
        findings += check_connection(settings, tenant, environment.clock)
    blocked = [one.name for one in findings if one.status is CheckStatus.PROBLEM and one.name in _BLOCKING]
    if blocked or not data.path.is_dir():
        reason = " and ".join(blocked) or "disk"
        return Examination(tenant, [*findings, note("service", f"not asked: first mend the problem of {reason}")], 0)
    try:
        asked, requests = _at_the_service(settings, tenant, data, environment, on_wait)
    except BookferryError as error:
        asked, requests = [failed("configuration" if isinstance(error, ConfigurationError) else "service", error)], 0
    return Examination(tenant, findings + asked, requests)


_BLOCKING = ("secrets", "database", "token")
"""Checks whose problems stop the requests to the service: it would refuse them, or their rate could not be limited."""


def _on_this_machine(data: DataFolder, tenant: str, environment: Environment) -> list[CheckResult]:
    """Disk, database and snapshots."""
    try:
        newest, complete = machine.newest_snapshots(data, tenant)
    except BookferryError as error:
        newest, complete = None, None
        backup = failed("last backup", error)
    else:
        backup = machine.last_backup(tenant, newest, complete, environment.clock.now())
    free = environment.free_bytes(_existing(data.path))
    return [machine.disk(data, free, complete or newest), machine.database(data.state_path), backup]


def _existing(path: Path) -> Path:
    """The folder, or the nearest existing one above it."""
    return next(one for one in (path, *path.parents) if one.exists())


def _at_the_service(
    settings: Settings, tenant: str, data: DataFolder, environment: Environment, on_wait: Callable[[Waiting], None]
) -> tuple[list[CheckResult], int]:
    used = _used(settings, tenant, data)
    with open_client(settings, tenant, state=data.state_path, on_wait=on_wait) as client:
        probe = Probe(client, environment.clock, MAX_REQUESTS)
        visit = _ServiceExamination(
            settings.tenant(tenant).api, _user(settings, tenant, environment.environ), probe, environment
        )
        findings = [*visit.findings(), machine.rate(settings, tenant, used)]
        return findings, probe.requests


def _used(settings: Settings, tenant: str, data: DataFolder) -> int:
    """Slots of the tenant's budget that other runs have taken in the last minute."""
    library, limit = settings.budget_of(tenant)
    with closing(Budget(data.state_path, library, limit)) as budget:
        return budget.used()


def _user(settings: Settings, tenant: str, environ: Mapping[str, str]) -> str:
    """The user name of a v2 sign-in; empty if only the service knows it."""
    if settings.tenant(tenant).api != "v2":
        return ""
    credentials = settings.credentials(tenant, environ)
    return credentials.username if isinstance(credentials, BasicCredentials) else ""


class _ServiceExamination:
    """The requests to one service, in order. The later ones are sent only if the first returns records."""

    def __init__(self, api: str, user: str, probe: Probe, environment: Environment) -> None:
        self._api = api
        self._user = user
        self._probe = probe
        self._environment = environment
        self._answers: list[ProbeResponse] = []
        self._refused: ProbeResponse | None = None
        self._larger = True

    def findings(self) -> list[CheckResult]:
        """The results for the responses."""
        try:
            me = self._ask("users/me") if self._api == "v3" else None
            first = self._first_page()
        except BookferryError as error:
            return [failed("sign-in" if isinstance(error, SignInError) else "service", error)]
        trouble = self._probe.failures[-1] if self._probe.failures else None
        found = [service.reachable(first, trouble)]
        well = first is not None and first.records is not None
        if first is not None and found[0].status is CheckStatus.OK:
            found.append(service.sign_in(first, self._user or service.person(me)))
        found += [service.clock(self._answers)] if self._answers else []
        found += [service.end_of_v2(self._api, self._environment.clock.now().date(), answers=well)]
        if first is None or not well:
            return found
        responses = self._responses(first)  # before the search for a description, which may take more requests
        return [*found, *self._beside(), *check_assumptions(responses)]

    def _first_page(self) -> ProbeResponse | None:
        """The first page, with more records than the service grants: it should cut them to 50 (A20). After a refusal, a backup's page."""
        larger = self._ask("publications", page=1, per_page=ASKED_FOR)
        if larger is not None and (not larger.response.is_client_error or larger.status in service.REFUSALS):
            return larger
        self._refused, self._larger = larger, False
        return self._ask("publications", page=1, per_page=PER_PAGE)

    def _beside(self) -> list[CheckResult]:
        """The results for everything beside the list of publications."""
        other = service.OTHER_VERSION[self._api]
        elsewhere = self._probe.ask_at(f"{self._probe.base_url}/api/{other}/publications", signed_in=False, per_page=1)
        lists = OWN_SCOPES if self._api == "v3" else ()
        return [
            *(service.readable(name, self._ask(name, per_page=1)) for name in lists),
            service.other_version(self._api, elsewhere),
            description.compare(self._api, description.fetch(self._probe, self._api)),
        ]

    def _responses(self, first: ProbeResponse) -> ServiceResponses:
        sought = doi_to_seek(first)
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
