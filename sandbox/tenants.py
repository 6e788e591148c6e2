"""A running tenant: its state, request rate, settings and faults."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock

from sandbox.clock import Clock, ShiftedClock
from sandbox.faults import FaultQueue
from sandbox.library.other_resources import add_other_resources
from sandbox.library.seed import seed
from sandbox.rate_limit import RequestRate
from sandbox.settings import Settings
from sandbox.state.blobs import Blobs
from sandbox.state.database import Database
from sandbox.state.publications import Publications
from sandbox.state.records import FURTHER, REFERENCES, Document, Records
from sandbox.state.tenants import add_tenant
from sandbox.storage import Storage

_LOG_LENGTH = 1000


@dataclass(frozen=True, slots=True)
class Account:
    """The credentials of a tenant's first account."""

    email: str = "backup@library.example"
    password: str = "sandbox-password"  # noqa: S105  # invented, and printed at the start


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A request in the log; ``sign_in`` is the scheme of its Authorization header, never its content."""

    at: float
    method: str
    path: str
    query: str
    status: int | None
    sign_in: str | None


@dataclass(slots=True)
class Tenant:
    """A library at one base_url. ``settings`` is replaced as a whole."""

    name: str
    account: Account
    session_cookie: str
    clock: ShiftedClock
    settings: Settings
    initial_settings: Settings
    rate: RequestRate
    publications: Publications
    blobs: Blobs
    storage: Storage
    records: Mapping[str, Records]
    faults: FaultQueue = field(default_factory=FaultQueue)
    signing_in: Lock = field(default_factory=Lock)
    request_log: deque[LoggedRequest] = field(default_factory=lambda: deque(maxlen=_LOG_LENGTH))

    def base_url(self, host_url: str) -> str:
        """Returns the tenant's address on the host of a request, which may be its subdomain."""
        root = host_url.rstrip("/")
        return root if subdomain(root.partition("://")[2]) == self.name else f"{root}/{self.name}"


def _first_account(account: Account) -> Document:
    name = account.email.partition("@")[0].replace(".", " ").title()
    roles = ["admin", "librarian"]
    return {"email": account.email, "name": name, "roles": roles, "avatar": None, "password": account.password}


def subdomain(host: str) -> str | None:
    """Returns the first label of a host such as ``library.localhost:8000``; None for one label and for an IP address."""
    name, dot, rest = host.partition(":")[0].partition(".")
    return name if dot and not rest.replace(".", "").isdigit() else None


def open_tenant(
    database: Database,
    name: str,
    *,
    records: int | None,
    account: Account,
    settings: Settings,
    clock: Clock,
    storage_port: int,
) -> Tenant:
    """Makes and fills the tenant of this name.

    ``records``: how many real records it gets, None for all. ``storage_port``: that of the storage service.
    """
    with database.transaction() as connection:
        key, signing_key = add_tenant(connection, name)
        publications = Publications(database, key)
        tables = {resource: publications.of(resource) for resource in (*REFERENCES, *FURTHER)} | {
            "publications": publications
        }
        tables["users"].create(_first_account(account))
        publications.of("organizations").add([{"name": name}])
        if records != 0:
            seed(publications, records)
            add_other_resources(connection, key, publications)
    clock = ShiftedClock(clock)
    blobs = Blobs(database, tables["files"], name)
    return Tenant(
        name=name,
        account=account,
        session_cookie=sha256(signing_key + account.email.encode()).hexdigest()[:32],
        clock=clock,
        settings=settings,
        initial_settings=settings,
        rate=RequestRate(clock.monotonic),
        publications=publications,
        blobs=blobs,
        storage=Storage(blobs, signing_key, clock, port=storage_port),
        records=tables,
    )
