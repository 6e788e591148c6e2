"""Checks of this machine: configuration, secrets, disk, database, snapshots. They send no requests to the service."""

from __future__ import annotations

import os
import shlex
import sqlite3
import stat
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pipelines.doctor.findings import CheckResult, failed, note, ok, problem, warning
from pipelines.errors import BookferryError, ConfigurationError, ExitStatus, SignInError
from pipelines.file_access import wrong_entries
from pipelines.service.sign_in.configured_store import open_tokens
from pipelines.service_limits import REQUESTS_PER_MINUTE
from pipelines.settings.settings import Settings
from pipelines.state.local import LocalState
from pipelines.state.store import State
from pipelines.store.durable import storage_error
from pipelines.store.encryption import personal_keys
from pipelines.store.snapshots.snapshots import DamagedSnapshot, DataFolder, Snapshot

if TYPE_CHECKING:
    from pipelines.state.postgres import PostgresState

MIN_FREE_BYTES = 100 * 1000 * 1000
"""Bytes that even a small backup may need: tables, temporary files of sorting, Dagster's history."""

LATE = timedelta(hours=26)
"""Greatest age of a nightly backup: a day, and the duration of the backup."""

LOCKED_SECONDS = 5.0
"""Bookferry locks state.db for less than a millisecond; a process that locks it for seconds hangs."""

FULL_CHECK_BYTES = 64 * 1024 * 1024
"""Largest state.db, in bytes, that is checked completely for damage."""


def configuration(settings: Settings, tenant: str) -> CheckResult:
    """The entry of the tenant in bookferry.toml."""
    chosen = settings.tenant(tenant)
    return ok(
        "configuration",
        f"{settings.path}: {chosen.base_url}, {chosen.api}",
        base_url=chosen.base_url,
        api=chosen.api,
        config=str(settings.path),
    )


def secrets(settings: Settings, tenant: str, environ: Mapping[str, str]) -> CheckResult:
    """Whether the environment variables of the entry have usable values."""
    chosen = settings.tenant(tenant)
    try:
        settings.check_sign_in(tenant, environ)
        key = personal_keys(settings, environ).to_write()
    except ConfigurationError as error:
        return failed("secrets", error)
    of_v2 = [chosen.session_cookie_env] if chosen.session_cookie_env else [chosen.username_env, chosen.password_env]
    named = list(filter(None, of_v2 if chosen.api == "v2" else [chosen.client_secret_env]))
    of_people = f"; users' data is encrypted with the personal key {key.fingerprint}" if key else ""
    facts = {"personal_key": key.fingerprint if key else None}
    if chosen.api == "v2" and chosen.password_command:
        message = f"{named[0]} is set, and {chosen.password_command[0]} prints the password{of_people}"
        return ok("secrets", message, **facts)
    if not named:
        return ok("secrets", f"none are needed in the environment: v3 signs in with a token{of_people}", **facts)
    return ok("secrets", f"{' and '.join(named)} {'is' if len(named) == 1 else 'are'} set{of_people}", **facts)


def rate(settings: Settings, tenant: str, used_by_others: int | None) -> CheckResult:
    """The configured rate limit (I1), and its use by other runs."""
    _, limit = settings.budget_of(tenant)
    facts: dict[str, Any] = {"requests_per_minute": limit, "used_by_others": used_by_others}
    others = f"; {used_by_others} of them used by other runs in the last minute" if used_by_others else ""
    if limit > REQUESTS_PER_MINUTE:
        return warning(
            "rate",
            f"requests_per_minute is {limit:,}, but the service allows automated access about {REQUESTS_PER_MINUTE}{others}",
            f"Set requests_per_minute = {REQUESTS_PER_MINUTE} unless the library's operators granted more.",
            **facts,
        )
    return ok("rate", f"{limit} requests in any 60 seconds{others}", **facts)


def disk(data: DataFolder, free: int, newest: Snapshot | None) -> CheckResult:
    """Whether the data folder is writable, and has space for a snapshot as large as the newest one."""
    try:
        data.prepare()
        with tempfile.NamedTemporaryFile(dir=data.path, prefix=".doctor-") as file:
            file.write(b"\0")
            file.flush()
    except BookferryError as error:
        return failed("disk", error)
    except OSError as error:
        return failed("disk", storage_error(error, data.path))
    last = sum(table.bytes for table in newest.manifest.tables.values()) if newest is not None else 0
    needed = max(2 * last, MIN_FREE_BYTES)
    message = f"{data.path}: {_bytes(free)} free" + (f", the newest snapshot has {_bytes(last)}" if last else "")
    facts: dict[str, Any] = {"free_bytes": free, "newest_snapshot_bytes": last}
    if free < needed:
        return problem("disk", f"{message}; a backup may need {_bytes(needed)}", _MAKE_ROOM, **facts)
    if free < 5 * needed:
        return warning("disk", f"{message}: space for few more snapshots", _MAKE_ROOM, **facts)
    return ok("disk", message, **facts)


_MAKE_ROOM = (
    "Free some space, or name a folder on another disk as `data` (as `work`, where the data is in a bucket). "
    "`bookferry snapshots list` lists the snapshots."
)


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:  # noqa: PLR2004  SI
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"


OWN_ENTRIES = (
    *(
        "snapshots",
        "files",
        "plans",
        "work",
        "reports",
        "verifications",
        "drills",
        "trash",
        "lists",
        "dagster",
        "iceberg",
    ),
    *("state.db", "library.duckdb", "owner", ".lease-", ".catalogue.", ".report-", ".iceberg."),
)
"""Beginnings of the names in a data folder: a person may have other files there, too."""


def access(settings: Settings, environ: Mapping[str, str] = os.environ) -> CheckResult:
    """Whether others on this machine can open data or sign-ins, or the configured group cannot use the data. Nothing is changed."""
    folders: list[tuple[Path, tuple[str, ...], str | None]] = [(settings.data, OWN_ENTRIES, settings.group)]
    with suppress(ConfigurationError):  # a user without a home folder; the commands that need a sign-in say so
        folders.append((settings.tokens_folder(environ), tuple(f"{tenant}-" for tenant in settings.tenants), None))
    wrong = [(folder, group, wrong_entries(folder, names, group)) for folder, names, group in folders]
    wrong = [(folder, group, entries) for folder, group, entries in wrong if entries]
    people = f"this user and the group {settings.group}" if settings.group else "this user"
    facts: dict[str, Any] = {"wrong": sum(len(entries) for _, _, entries in wrong), "group": settings.group}
    if not wrong:
        return ok("access", f"{settings.data}: only {people} can open it", **facts)
    opened = [
        f"{'others can open, or the group cannot use' if group else 'other users of this machine can open'} "
        f"{', '.join(entry.name for entry in entries)} in {folder} (mode {stat.S_IMODE(folder.stat().st_mode):04o})"
        for folder, group, entries in wrong
    ]
    commands = [_closing(folder, group, entries) for folder, group, entries in wrong]
    share = "" if settings.group else " To share data, set `group` in bookferry.toml."
    return warning(
        "access", "; ".join(opened), f"Run as their owner or as root: {' and '.join(commands)}.{share}", **facts
    )


def _closing(folder: Path, group: str | None, entries: Sequence[Path]) -> str:
    """The command that gives entries of a folder the permissions that new ones have."""
    names = shlex.join(entry.name for entry in entries)
    shared = (
        f"chgrp {group} . && chmod g+rwxs . && chgrp -R {group} {names} && find {names} -type d -exec chmod g+s {{}} + && "
        if group
        else ""
    )
    return f"`cd {shlex.quote(str(folder))} && {shared}chmod -R {'g+rwX,o=' if group else 'go='} {names}`"


def database(state: State) -> CheckResult:
    """Whether the state, which has the budget, is writable. Without the budget, no request may be sent (I1)."""
    if not isinstance(state, LocalState):
        return _shared_state(cast("PostgresState", state))
    path = state.path
    if not path.exists():
        return ok("database", f"the first request creates {path}")
    try:
        _write_nothing(path)
    except sqlite3.Error as error:
        return _database_error(path, error)
    return ok("database", f"{path} can be read and written")


def _shared_state(state: PostgresState) -> CheckResult:
    """Whether the shared state answers, how quickly, and whether it keeps what it confirms."""
    try:
        server, seconds = state.examine()
    except BookferryError as error:
        return failed("database", error)
    between = ", behind a pooler in session mode" if server.pooled else ""
    message = (
        f"the state in {state.place} answers in {seconds * 1000:.1f} ms (Postgres {server.version.split()[0]}{between}, "
        f"synchronous_commit = {server.synchronous_commit})"
    )
    facts: dict[str, Any] = {"round_trip_ms": round(seconds * 1000, 1), "server_version": server.version}
    if server.fsync != "on":
        return warning(
            "database",
            f"{message}; it has fsync = {server.fsync}, so a loss of power can cost the journal of writes",
            "Turn fsync on in the server's configuration.",
            **facts,
        )
    return ok("database", message, **facts)


def _write_nothing(path: Path) -> None:
    connection = sqlite3.connect(path, timeout=LOCKED_SECONDS, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
        if path.stat().st_size <= FULL_CHECK_BYTES:
            [(verdict,)] = connection.execute("PRAGMA quick_check(1)").fetchall()
            if verdict != "ok":
                raise sqlite3.DatabaseError(verdict)
    finally:
        connection.close()


def _database_error(path: Path, error: sqlite3.Error) -> CheckResult:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code == sqlite3.SQLITE_BUSY:
        return problem(
            "database",
            f"{path} was locked by another program for {LOCKED_SECONDS:.0f} seconds",
            "End that program. Bookferry locks the file only for moments.",
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return problem(
            "database",
            f"{path} is damaged ({error})",
            "Restore it from a copy. If you have none, wait a minute, move it and the files beside it (-wal, -shm) away, and try again.",
        )
    return failed("database", storage_error(error, path))


def postgres(settings: Settings, tenant: str) -> list[CheckResult]:
    """Whether the configured database, which stores the sign-ins, answers."""
    if settings.postgres_env is None:
        return []
    try:
        store = open_tokens(settings, tenant)
        with suppress(SignInError):  # another check reports a missing sign-in
            store.read()
        if settings.staging.load:
            from pipelines.store.postgres.loading import Database  # noqa: PLC0415  most have none

            Database(settings.postgres(os.environ) or "").check()
    except BookferryError as error:
        return [failed("postgres", error)]
    return [ok("postgres", f"{store.place} answers")]


@dataclass(frozen=True)
class NewestSnapshots:
    """The newest snapshot of a tenant, the newest complete one, and those with a damaged manifest.

    Snapshots without publications count only if there are no others.
    """

    newest: Snapshot | None = None
    complete: Snapshot | None = None
    damaged: Sequence[DamagedSnapshot] = ()


def newest_snapshots(data: DataFolder, tenant: str) -> NewestSnapshots:
    """The newest snapshots of a tenant."""
    every, damaged = data.examine_snapshots(tenant)
    found = [snapshot for snapshot in every if snapshot.holds_publications] or every
    complete = [snapshot for snapshot in found if snapshot.manifest.complete]
    return NewestSnapshots(found[-1] if found else None, complete[-1] if complete else None, damaged)


def last_backup(tenant: str, snapshots: NewestSnapshots, now: datetime) -> CheckResult:
    """Age of the newest complete snapshot, so that everybody knows when the last good backup ran. A damaged one is named."""
    age = _age_of_backup(tenant, snapshots.newest, snapshots.complete, now)
    if not snapshots.damaged:
        return age
    damaged = snapshots.damaged[-1]
    more = f" ({len(snapshots.damaged) - 1:,} more are like that)" if len(snapshots.damaged) > 1 else ""
    todo = f"{damaged.problem}{more} `bookferry snapshots verify {damaged.name}` checks it again. {age.todo}".rstrip()
    return warning("last backup", f"{age.message}; the snapshot {damaged.name} cannot be used", todo, **age.facts)


def _age_of_backup(tenant: str, newest: Snapshot | None, complete: Snapshot | None, now: datetime) -> CheckResult:
    if newest is None:
        return note("last backup", "there is none yet", f"Run `bookferry backup {tenant}`.", age_seconds=None)
    if complete is None:
        return warning(
            "last backup",
            f"none is complete; the newest partial one is {newest.name}",
            f"`bookferry snapshots show {newest.name}` names its problems.",
            age_seconds=None,
        )
    past = now - datetime.fromisoformat(complete.manifest.finished_at)
    facts: dict[str, Any] = {"snapshot": complete.name, "age_seconds": round(past.total_seconds())}
    if past > LATE:
        return warning(
            "last backup",
            f"the newest complete snapshot, {complete.name}, is {_ago(past)} old",
            f"Does the nightly job run? See `bookferry ui`, or run `bookferry backup {tenant}`.",
            **facts,
        )
    if newest is not complete:
        return warning(
            "last backup",
            f"{complete.name} is complete and {_ago(past)} old; a newer one, {newest.name}, is not complete",
            f"`bookferry snapshots show {newest.name}` names its problems.",
            **facts,
        )
    return ok("last backup", f"{complete.name}, complete, {_ago(past)} old", **facts)


def _ago(past: timedelta) -> str:
    minutes = max(1, round(past.total_seconds() / 60))
    if minutes < 120:  # noqa: PLR2004
        return f"{minutes} min"
    return f"{minutes // 60} hours" if minutes < 48 * 60 else f"{minutes // 60 // 24} days"


def unusable(error: ConfigurationError) -> CheckResult:
    """The configuration cannot be read at all."""
    return problem("configuration", str(error), exit_status=ExitStatus.USAGE)
