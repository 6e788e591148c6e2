"""A running tenant: its state, its traffic, its settings and the faults ordered for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sandbox.clock import Clock, ShiftedClock
from sandbox.faults import FaultQueue
from sandbox.library.other_resources import add_other_resources
from sandbox.library.seed import seed
from sandbox.objects.external_store import ExternalStore
from sandbox.settings import Settings
from sandbox.state.accounts import Accounts, ensure_account
from sandbox.state.assets import Assets
from sandbox.state.blobs import Blobs
from sandbox.state.clients import Clients
from sandbox.state.database import Database
from sandbox.state.grants import Grants
from sandbox.state.publications import Publications
from sandbox.state.records import TABLES, Records
from sandbox.state.tenants import add_tenant, find_tenant
from sandbox.storage import Storage
from sandbox.traffic import Traffic

_LOG_LENGTH = 1000


@dataclass(frozen=True, slots=True)
class Account:
    """The credentials with which a tenant can be used from the start."""

    email: str = "backup@library.example"
    password: str = "sandbox-password"  # noqa: S105  # made up, and printed when the sandbox starts


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A request as the log keeps it; ``sign_in`` is the scheme of its Authorization header, never its content."""

    at: float
    method: str
    path: str
    query: str
    status: int | None
    sign_in: str | None


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail that the service would have sent to a person."""

    at: float
    to: str
    subject: str


@dataclass(slots=True)
class Tenant:
    """One library at one base_url. ``settings`` is replaced as a whole, never changed in part."""

    name: str
    account: Account
    session_cookie: str
    clock: ShiftedClock
    settings: Settings
    initial_settings: Settings
    traffic: Traffic
    publications: Publications
    accounts: Accounts
    blobs: Blobs
    storage: Storage
    assets: Assets
    records: Mapping[str, Records]
    clients: Clients
    grants: Grants
    faults: FaultQueue = field(default_factory=FaultQueue)
    request_log: deque[LoggedRequest] = field(default_factory=lambda: deque(maxlen=_LOG_LENGTH))
    mails: deque[Mail] = field(default_factory=lambda: deque(maxlen=_LOG_LENGTH))

    def base_url(self, host_url: str) -> str:
        """Returns the tenant's address on the host of a request."""
        return f"{host_url.rstrip('/')}/{self.name}"

    def counts(self) -> dict[str, Any]:
        """What the control endpoint tells."""
        return asdict(self.traffic.counts())


def open_tenant(
    database: Database,
    name: str,
    *,
    records: int | None,
    account: Account,
    settings: Settings,
    clock: Clock,
    storage_port: int | None = None,
    external_store: ExternalStore | None = None,
) -> Tenant:
    """The tenant of this name, made and filled if the state does not have it yet.

    ``records``: how many of the real library a new tenant gets, None for all. One transaction: a process killed in the
    middle leaves no half a library behind. ``storage_port``: where the storage service listens, None for a host of its own
    in process. ``external_store``: the store that takes uploads in its place.
    """
    with database.write() as connection:
        row = find_tenant(connection, name)
        if row is None:
            row = add_tenant(connection, name)
            cookie = ensure_account(connection, row.key, email=account.email, password=account.password)
            if records != 0:
                seed(connection, row.key, records)
                add_other_resources(connection, row.key)
        else:
            cookie = ensure_account(connection, row.key, email=account.email, password=account.password)
    clock = ShiftedClock(clock)
    blobs = Blobs(database, row.key, name)
    return Tenant(
        name=name,
        account=account,
        session_cookie=cookie,
        clock=clock,
        settings=settings,
        initial_settings=settings,
        traffic=Traffic(clock.monotonic),
        publications=Publications(database, row.key),
        accounts=Accounts(database, row.key),
        blobs=blobs,
        storage=Storage(blobs, row.signing_key, clock, port=storage_port, external_store=external_store),
        assets=Assets(database, row.key),
        records={table.name: Records(database, row.key, table) for table in TABLES},
        clients=Clients(database, row.key),
        grants=Grants(database, row.key),
    )
