"""All that `bookferry doctor` checks, in the order of its output.

Each check has its data above it: its name, whom it concerns (`when`), what must be well before (`needs`), the requests that it may add,
and the assumption of docs/assumptions.md that it tests. Its first sentence says what holds where all is well. It reads a `Look`, and
returns what a person reads, with what to do next.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from pipelines.doctor import backup_age
from pipelines.doctor.findings import (
    CheckResult,
    differs,
    expected,
    failed,
    not_checked,
    note,
    ok,
    problem,
    warning,
)
from pipelines.doctor.look import REFUSALS, Look, total_of
from pipelines.errors import BookferryError, ConfigurationError, ExitStatus, SignInError
from pipelines.file_access import wrong_entries
from pipelines.humanize import duration, size
from pipelines.inventory import LAST_DAY_OF_V2, LIST_PATHS, NOT_LISTED, RESOURCES, default_resources
from pipelines.publication_fields import IDENTIFIER_FIELDS, IDENTIFIER_LIST, PUBLICATION_KEYS, REFERENCES
from pipelines.records.values import day, whole_number
from pipelines.scopes import BACKUP, SCOPES, abilities
from pipelines.service.end_of_v2 import is_served
from pipelines.service.probe import ProbeResponse
from pipelines.service.redaction import outside_text
from pipelines.service.sign_in.configured_store import open_tokens
from pipelines.service.sign_in.sign_in_state import sign_in_state
from pipelines.service.sign_in.stored_sign_in import local_time
from pipelines.service.sign_in.token_store import LockTakenError
from pipelines.service_limits import PER_PAGE, REQUESTS_PER_MINUTE
from pipelines.settings.schedule import Hook
from pipelines.shapes.model import ResourceSchema
from pipelines.shapes.unread_lists import unread_lists
from pipelines.sign_in_health import warning as sign_in_warning
from pipelines.state.local import LocalState
from pipelines.store.durable import storage_error, storage_errors
from pipelines.store.encryption import personal_keys
from pipelines.store.iceberg.catalogue import catalogue_settings, check_catalogue
from pipelines.store.objects.objects import Objects

if TYPE_CHECKING:
    from pipelines.state.postgres import PostgresState


@dataclass(frozen=True)
class Check:
    """One check."""

    name: str
    run: Callable[[Look], CheckResult]
    when: Callable[[Look], object] = lambda _: True
    needs: tuple[str, ...] = ()
    """Names of the checks without whose success this one cannot be made."""
    requests: int = 0
    """Most requests that it adds to those of the checks before it."""
    assumption: str = ""
    """Its number in docs/assumptions.md."""


CHECKS: list[Check] = []


def check(name: str, **data: Any) -> Callable[[Callable[[Look], CheckResult]], Callable[[Look], CheckResult]]:
    """Puts a function into the table, with the data of a `Check`."""

    def put(run: Callable[[Look], CheckResult]) -> Callable[[Look], CheckResult]:
        CHECKS.append(Check(name, run, **data))
        return run

    return put


TO_ASK = ("secrets", "data folder", "database", "token")
"""What must be well before any request: the library would refuse it, or the rate limit could not be kept."""

SIGNED_IN = ("sign-in",)


def V2(look: Look) -> bool:  # noqa: N802  reads as a value in the table
    """A tenant of version 2."""
    return look.api == "v2"


def V3(look: Look) -> bool:  # noqa: N802  as above
    """A tenant of version 3."""
    return look.api == "v3"


# This machine


@check("configuration")
def configuration(look: Look) -> CheckResult:
    """bookferry.toml has the tenant: it is read before the first check."""
    facts = {"base_url": look.chosen.base_url, "api": look.api, "config": str(look.settings.path)}
    return ok(f"{look.settings.path}: {look.chosen.base_url}, {look.api}", **facts)


@check("secrets")
def secrets(look: Look) -> CheckResult:
    """Each environment variable that the tenant names has a value that can be used."""
    chosen = look.chosen
    look.settings.check_sign_in(look.tenant, look.around.environ)
    key = personal_keys(look.settings, look.around.environ).to_write()
    of_v2 = chosen.session_cookie_env, chosen.username_env, chosen.password_env
    named = [name for name in (of_v2 if V2(look) else (chosen.client_secret_env,)) if name]
    parts = [f"{' and '.join(named)} {'is' if len(named) == 1 else 'are'} set"] if named else []
    parts += [f"{chosen.password_command[0]} prints the password"] if V2(look) and chosen.password_command else []
    sign_in = ", and ".join(parts) or "none are needed in the environment: v3 signs in with a token"
    people = f"; users' data is encrypted with the personal key {key.fingerprint}" if key else ""
    return ok(f"{sign_in}{people}", personal_key=key.fingerprint if key else None)


@check("storage", when=lambda look: look.settings.bucket)
def storage(look: Look) -> CheckResult:
    """Objects of the bucket can be written, listed, read and deleted, and a put replaces nothing."""
    return trial_of(look.data.objects)


def trial_of(objects: Objects) -> CheckResult:
    """Every operation, as a backup does it."""
    key, content = f"{TRIAL_FOLDER}/{uuid4().hex}", b"Bookferry's doctor was here; this may be deleted."
    objects.put(key, content)
    try:
        replaced = objects.put(key, b"") or objects.read(key) != content
        listed = key in [entry.key for entry in objects.below(TRIAL_FOLDER)]
    finally:
        objects.delete(key)
    if replaced:
        return problem(
            f"{objects.address}: a second put replaced the object, so two runs could mix their snapshots (the store ignores "
            "If-None-Match)",
            "Update the store, or use one that refuses the second put, as Amazon's S3 does.",
        )
    if not listed or objects.size(key) is not None:
        return problem(
            f"{objects.address}: a {'deleted object is still there' if listed else 'new object is not listed'}",
            "A backup needs a store whose responses include earlier changes. Use another one.",
        )
    return ok(f"{objects.address}: objects can be written, listed, read and deleted, and a put replaces nothing")


TRIAL_FOLDER = "doctor"
"""Folder of the one small object that the trial writes and deletes."""


@check("data folder")
def data_folder(look: Look) -> CheckResult:
    """The data folder, or the work folder beside a bucket, can be written."""
    look.data.prepare()
    with storage_errors(look.data.path), tempfile.NamedTemporaryFile(dir=look.data.path, prefix=".doctor-") as file:
        file.write(b"\0")
        file.flush()
    return ok(f"{look.data.path} can be written")


@check("access")
def access(look: Look) -> CheckResult:
    """Only this user, and the configured group, can open the data; only this user can open the sign-ins. Nothing is changed."""
    settings, group = look.settings, look.settings.group
    folders: list[tuple[Path, tuple[str, ...], str | None]] = [(settings.data, OWN_ENTRIES, group)]
    with suppress(ConfigurationError):  # a user without a home folder; the commands that need a sign-in say so
        sign_ins = tuple(f"{tenant}-" for tenant in settings.tenants)
        folders.append((settings.tokens_folder(look.around.environ), sign_ins, None))
    wrong = [(folder, group, wrong_entries(folder, names, group)) for folder, names, group in folders]
    wrong = [(folder, group, entries) for folder, group, entries in wrong if entries]
    people = f"this user and the group {group}" if group else "this user"
    facts: dict[str, Any] = {"wrong": sum(len(entries) for _, _, entries in wrong), "group": group}
    if not wrong:
        return ok(f"{settings.data}: only {people} can open it", **facts)
    opened = [
        f"{'others can open, or the group cannot use' if group else 'other users of this machine can open'} "
        f"{', '.join(entry.name for entry in entries)} in {folder} (mode {stat.S_IMODE(folder.stat().st_mode):04o})"
        for folder, group, entries in wrong
    ]
    commands = [_closing(folder, group, entries) for folder, group, entries in wrong]
    share = "" if group else " To share data, set `group` in bookferry.toml."
    return warning("; ".join(opened), f"Run as their owner or as root: {' and '.join(commands)}.{share}", **facts)


OWN_ENTRIES = (
    *("snapshots", "files", "plans", "work", "reports", "verifications", "drills", "trash", "dagster", "iceberg"),
    *("state.db", "library.duckdb", "owner", ".lease-", ".catalogue.", ".report-", ".iceberg."),
)
"""Beginnings of the names in a data folder: a person may have other files there, too."""


def _closing(folder: Path, group: str | None, entries: Sequence[Path]) -> str:
    """The command that gives entries of a folder the permissions that new ones have."""
    names = shlex.join(entry.name for entry in entries)
    shared = (
        f"chgrp {group} . && chmod g+rwxs . && chgrp -R {group} {names} && find {names} -type d -exec chmod g+s {{}} + && "
        if group
        else ""
    )
    return f"`cd {shlex.quote(str(folder))} && {shared}chmod -R {'g+rwX,o=' if group else 'go='} {names}`"


@check("disk")
def disk(look: Look) -> CheckResult:
    """The disk of the data folder has space for a few snapshots as large as the newest one."""
    path = look.data.path
    free = look.around.free_bytes(next(folder for folder in (path, *path.parents) if folder.exists()))
    newest = None
    with suppress(BookferryError):  # the check of the last backup names snapshots that cannot be read
        newest = look.snapshots.complete or look.snapshots.newest
    last = sum(table.bytes for table in newest.manifest.tables.values()) if newest is not None else 0
    needed = max(2 * last, MIN_FREE_BYTES)
    message = f"{path}: {size(free)} free" + (f", the newest snapshot has {size(last)}" if last else "")
    facts: dict[str, Any] = {"free_bytes": free, "newest_snapshot_bytes": last}
    todo = (
        "Free some space, or name a folder on another disk as `data` (as `work`, where the data is in a bucket). "
        "`bookferry snapshots list` lists the snapshots."
    )
    if free < needed:
        return problem(f"{message}; a backup may need {size(needed)}", todo, **facts)
    if free < 5 * needed:
        return warning(f"{message}: space for few more snapshots", todo, **facts)
    return ok(message, **facts)


MIN_FREE_BYTES = 100 * 1000 * 1000
"""Bytes that even a small backup may need: tables, temporary files of sorting, Dagster's history."""


@check("database")
def database(look: Look) -> CheckResult:
    """The state can be read and written: it has the budget, and without that no request may be sent (I1)."""
    state = look.data.state
    if not isinstance(state, LocalState):
        return _shared_state(cast("PostgresState", state))
    path = state.path
    if not path.exists():
        return ok(f"the first request creates {path}")
    try:
        _write_nothing(path)
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code == sqlite3.SQLITE_BUSY:
            return problem(
                f"{path} was locked by another program for {LOCKED_SECONDS:.0f} seconds",
                "End that program. Bookferry locks the file only for moments.",
            )
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return problem(
                f"{path} is damaged ({error})",
                "Restore it from a copy. If you have none, wait a minute, move it and its -wal and -shm away, and try again.",
            )
        raise storage_error(error, path) from None
    return ok(f"{path} can be read and written")


LOCKED_SECONDS = 5.0
"""Bookferry locks state.db for less than a millisecond; a process that locks it for seconds hangs."""

FULL_CHECK_BYTES = 64 * 1024 * 1024
"""Largest state.db, in bytes, that is checked completely for damage."""


def _write_nothing(path: Path) -> None:
    with closing(sqlite3.connect(path, timeout=LOCKED_SECONDS, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
        if path.stat().st_size <= FULL_CHECK_BYTES:
            [(verdict,)] = connection.execute("PRAGMA quick_check(1)").fetchall()
            if verdict != "ok":
                raise sqlite3.DatabaseError(verdict)


def _shared_state(state: PostgresState) -> CheckResult:
    server, seconds = state.examine()
    between = ", behind a pooler in session mode" if server.pooled else ""
    message = (
        f"the state in {state.place} answers in {seconds * 1000:.1f} ms (Postgres {server.version.split()[0]}{between}, "
        f"synchronous_commit = {server.synchronous_commit})"
    )
    facts = {"round_trip_ms": round(seconds * 1000, 1), "server_version": server.version}
    if server.fsync != "on":
        return warning(
            f"{message}; it has fsync = {server.fsync}, so a loss of power can cost the journal of writes",
            "Turn fsync on in the server's configuration.",
            **facts,
        )
    return ok(message, **facts)


@check("last backup", needs=("storage",))
def last_backup(look: Look) -> CheckResult:
    """The newest snapshot is complete, and of last night."""
    return backup_age.last_backup(look.tenant, look.snapshots, look.around.clock.now())


@check("postgres", when=lambda look: look.settings.postgres_env is not None)
def postgres(look: Look) -> CheckResult:
    """The database answers that has the sign-ins, and takes the tables of each backup."""
    store = open_tokens(look.settings, look.tenant)
    with suppress(SignInError):  # the check of the token names a missing sign-in
        store.read()
    if look.settings.staging.load:
        from pipelines.store.postgres.loading import Database  # noqa: PLC0415  most have none

        Database(look.settings.postgres(look.around.environ) or "").check()
    return ok(f"{store.place} answers")


@check("iceberg", when=lambda look: look.settings.iceberg is not None)
def iceberg(look: Look) -> CheckResult:
    """The catalogue of Iceberg tables can be used."""
    chosen = catalogue_settings(look.settings, look.around.environ)
    check_catalogue(chosen, look.settings.data)
    return ok(f"{chosen.place} can be used")


@check("notify")
def notify(look: Look) -> CheckResult:
    """Somebody learns of a backup that failed, and of one that never started. Nothing is sent."""
    own, environ = look.settings.notify_of(look.tenant), look.around.environ
    todo = "Write a table [notify] with success and failure into bookferry.toml (docs/operating.md, Notifications)."
    try:
        success, failure = own.hook("success", environ), own.hook("failure", environ)
    except ConfigurationError as error:
        return warning(f"no notification can be sent: {error}", todo)
    if success is None and failure is None:
        return note("nobody is notified of a backup that failed or never started", todo)
    if missing := [hook.command[0] for hook in (success, failure) if hook is not None and _is_missing(hook, look)]:
        return warning(f"no such command: {', '.join(missing)}", "Correct it in [notify], or install it.")
    message = f"on success {_receiver(success)}, on failure {_receiver(failure)}"
    if success is None or failure is None:
        return note(
            message,
            "Only a missing call on success reveals a backup that never started; only the call on failure gives the reason of a failure.",
        )
    others = [name for name in look.settings.tenants if name != look.tenant]
    shared = [name for name in others if look.settings.notify_of(name).success == own.success]
    if isinstance(own.success, str) and shared:
        return warning(
            f"{message}; {', '.join(shared)} and {look.tenant} share one address, so each hides a missing run of the other",
            f"Give each a table [tenants.{look.tenant}.notify] with an address of its own.",
        )
    return ok(message)


def _is_missing(hook: Hook, look: Look) -> bool:
    name = hook.command[0] if hook.command else ""
    where = str(look.settings.path.parent / name) if "/" in name else name
    return bool(name) and shutil.which(where, path=look.around.environ.get("PATH")) is None


def _receiver(hook: Hook | None) -> str:
    """Who is called; only the host of an address, because the address is a secret (I10)."""
    if hook is None:
        return "nobody"
    return f"the command {hook.command[0]}" if hook.command else f"the address at {urlsplit(hook.address).hostname}"


# The sign-in


@check("token", when=V3)
def token(look: Look) -> CheckResult:
    """The stored sign-in can be used and renewed (service.md#tokens), and what a renewal brings can be stored (I3)."""
    clock = look.around.clock
    state, now = sign_in_state(look.settings, look.tenant, clock), clock.now().timestamp()
    again = f"Run `bookferry login {look.tenant}`."
    facts: dict[str, Any] = {
        "age_seconds": round(now - state.renewed_at) if state.renewed_at is not None else None,
        "seconds_left": _whole_seconds(state.seconds_left),
        "renewed_in_seconds": _whole_seconds(state.renewal_in),
        "signed_in_at": state.signed_in_at,
    }
    if state.problem is not None:
        return problem(state.problem, exit_status=ExitStatus.SIGN_IN, **facts)
    with (
        suppress(LockTakenError),  # another process is renewing it now, so it can write
        open_tokens(look.settings, look.tenant).locked(clock, seconds=0.0) as locked,
    ):
        locked.write(locked.read())
    if state.refreshing_since is not None:
        lost = f"the response to its renewal at {local_time(state.refreshing_since)} was lost; the next use renews it again"
        return warning(lost, again, **facts)
    if (advice := sign_in_warning(state, now)) is not None:
        return warning(advice, again, **facts)
    left = duration(facts["seconds_left"]) if facts["seconds_left"] is not None else "an unknown time"
    due = f"renewed in {duration(state.renewal_in)}" if state.renewal_in else "renewed at the next request"
    since = f"; signed in on {local_time(state.signed_in_at)}" if state.signed_in_at is not None else ""
    return ok(f"good for {left}, {due}{since}", **facts)


def _whole_seconds(seconds: float | None) -> int | None:
    return round(max(0.0, seconds)) if seconds is not None and abs(seconds) != float("inf") else None


@check("scopes", when=V3, needs=("token",))
def scopes(look: Look) -> CheckResult:
    """The sign-in has the scopes for the nightly backup; whether it has those for a migration is said, too (service.md#scopes)."""
    granted = sign_in_state(look.settings, look.tenant, look.around.clock).scopes
    facts: dict[str, Any] = {
        "scopes": list(granted),
        "missing": [scope for scope in BACKUP.scopes if scope not in granted],
    }
    again = f"Run `bookferry login {look.tenant}` and allow them on the consent page."
    if not granted:
        return note("the library did not name the scopes of the token; the checks below try what it may read", **facts)
    backup, migration = abilities(granted)
    if not backup.works:
        return problem(f"backup: {backup.sentence}", again, exit_status=ExitStatus.SIGN_IN, **facts)
    if backup.lacks:
        return warning(f"backup: {backup.sentence}", again, **facts)
    unknown = [scope for scope in granted if scope not in SCOPES]
    more = f"; unknown to Bookferry: {', '.join(unknown)}" if unknown else ""
    return ok(f"backup: {backup.sentence}; migration into it: {migration.sentence}{more}", **facts)


# The library


@check("rate", needs=TO_ASK)
def rate(look: Look) -> CheckResult:
    """No more requests are sent than the service allows automated access (I1); those of other runs count, too."""
    _, limit = look.settings.budget_of(look.tenant)
    used = look.requests_of_others()
    facts = {"requests_per_minute": limit, "used_by_others": used}
    others = f"; {used} of them used by other runs in the last minute" if used else ""
    if limit > REQUESTS_PER_MINUTE:
        return warning(
            f"requests_per_minute is {limit:,}, but the service allows automated access about {REQUESTS_PER_MINUTE}{others}",
            f"Set requests_per_minute = {REQUESTS_PER_MINUTE} unless the library's operators granted more.",
            **facts,
        )
    return ok(f"{limit} requests in any 60 seconds{others}", **facts)


@check("service", needs=TO_ASK, requests=2)
def service(look: Look) -> CheckResult:
    """The library answers the list with which every backup begins, whether it accepts the sign-in or not."""
    try:
        page = look.page
    except SignInError:
        return ok("answers")
    facts: dict[str, Any] = {"http_status": int(page.status)}
    if page.status in REFUSALS:
        return ok("answers", **facts)
    if page.error is not None:
        result = failed(page.error, **facts)
        is_ended = look.v2_has_ended or page.status == HTTPStatus.GONE
        is_lost = V2(look) and not is_ended and look.other_version and not is_served(look.other_version.response)
        return replace(result, todo=NEITHER_VERSION) if is_lost else result
    if page.records is None:
        return problem(
            f"GET {outside_text(page.address)} returned 200, but no list of records.",
            "Is base_url the library's address? Add /api to it and open it in a browser: the library's documentation should appear.",
            **facts,
        )
    return ok(f"answers, in {(page.answered_at - page.asked_at) / timedelta(milliseconds=1):,.0f} ms", **facts)


NEITHER_VERSION = "Neither version 2 nor version 3 is there. Is base_url the library's address, without /api?"


@check("sign-in", needs=("service",), requests=1)
def sign_in(look: Look) -> CheckResult:
    """The library accepts the sign-in, and lets this account read publications."""
    if look.page.error is not None:
        return failed(look.page.error, http_status=int(look.page.status))
    who = (
        _person(look.ask("users/me"))
        if V3(look)
        else look.chosen.username_env and look.around.environ.get(look.chosen.username_env)
    )
    return ok(f"accepted{f', as {outside_text(who, LONGEST_NAME)}' if who else ''}", user=who or None)


LONGEST_NAME = 80
"""Most characters of a name from the library."""


def _person(answer: ProbeResponse | None) -> str:
    """The user of `GET /users/me` (service.md#users); empty if the response does not name one."""
    record = answer.json if answer is not None and answer.error is None else None
    inside = record.get("user", record) if isinstance(record, dict) else None
    if not isinstance(inside, dict):
        return ""
    roles = inside.get("roles")
    named = ", ".join(str(role) for role in roles) if isinstance(roles, list) else ""
    name = str(inside.get("email") or inside.get("name") or "")
    return outside_text(f"{name} ({named})" if named and name else name, LONGEST_NAME)


@check("end of v2", needs=TO_ASK, requests=2)
def end_of_v2(look: Look) -> CheckResult:
    """The tenant does not depend on version 2, or that is not shut down soon (service.md#shutdown)."""
    left = (LAST_DAY_OF_V2 - look.around.clock.now().date()).days
    facts: dict[str, Any] = {"days_left": left, "last_day": LAST_DAY_OF_V2.isoformat()}
    todo = 'Move to v3: set api = "v3" for this tenant (or for another entry with the same base_url), then run `bookferry login`.'
    if V3(look):
        return ok("this tenant does not depend on v2", **facts)
    if look.v2_has_ended:
        ended = "v2 of this library has ended: it answers no list of publications any more"
        return problem(ended, todo, exit_status=ExitStatus.USAGE, **facts)
    if left < 0:
        now = (
            "It still answers, but may stop at any moment!" if look.has_list else "That may be why it answers no list."
        )
        return warning(f"v2 was due to be shut down {-left} days ago. {now}", todo, **facts)
    days = {0: "this is the last day", 1: "1 day left"}.get(left, f"{left} days left")
    message = f"v2 is shut down at the end of 2026: {days}"
    if left > 90:  # noqa: PLR2004  a quarter of a year
        return note(message, todo, **facts)
    if left > 30:  # noqa: PLR2004  a month
        return warning(message, todo, **facts)
    return warning(f"{message}!", f"{todo} Make a last backup of v2 before that day.", **facts)


@check("other lists", needs=SIGNED_IN, requests=6)
def other_lists(look: Look) -> CheckResult:
    """The account may read every list that a backup reads, and a backup reads every list that the library has."""
    chosen = look.chosen.resources
    backed_up = chosen or default_resources(look.api)
    asked = [name for name in RESOURCES[1:] if name in (chosen or RESOURCES)]
    listed = [name for name in asked if (look.api, name) not in NOT_LISTED]
    answers = {name: answer for name in listed if (answer := look.list_of(name)) is not None}
    statuses = {name: int(answers[name].status) if name in answers else None for name in asked}
    has = [name for name, answer in answers.items() if answer.records is not None]
    refused = [name for name in backed_up if statuses.get(name) in REFUSALS]
    if refused:
        scope = outside_text(answers[refused[0]].header("www-authenticate"), 200)
        return warning(
            f"this account may not read {', '.join(refused)}{f' ({scope})' if scope else ''}: backups leave them out, and report that",
            "Give the account that right, or sign in again with that scope: `bookferry login`.",
            lists=statuses,
        )
    if unread := [name for name in has if name not in backed_up]:
        names = ", ".join(f'"{name}"' for name in (*backed_up, *unread))
        return warning(
            f"this library lists {', '.join(unread)}, which v2 does not document: the nightly backup does not read them",
            f"To back them up, write resources = [{names}] into [tenants.{look.tenant}].",
            lists=statuses,
        )
    if lacks := [f"{name} ({statuses[name]})" if statuses[name] else name for name in asked if name not in has]:
        todo = 'To back them up, add a tenant of the same library with api = "v3".' if V2(look) else ""
        return note(f"this library does not list {', '.join(lacks)}: backups have none", todo, lists=statuses)
    return ok(f"{', '.join(has) or 'none'} can be read", lists=statuses)


@check("versions", needs=SIGNED_IN, requests=1)
def versions(look: Look) -> CheckResult:
    """Whether the other version of the API is there, too: it is asked without a sign-in, so that a 401 means yes."""
    other, answer = {"v2": "v3", "v3": "v2"}[look.api], look.other_version
    there = answer is not None and is_served(answer.response)
    missing = "did not answer" if answer is None else f"does not exist ({answer.status})"
    return ok(f"{look.api} is used; {other} {'also answers' if there else missing}", other=other, other_answers=there)


@check("description", needs=SIGNED_IN, requests=4)
def description(look: Look) -> CheckResult:
    """The library's own description (service.md#overview) has what a backup reads, and nothing that a backup leaves out."""
    described = look.description
    if described.problem:
        return note(f"nothing to compare with: {described.problem}", found=False)
    shown = {*described.resources.get("publications", ResourceSchema()).record}
    known = _known_fields(look)
    paths = [f"/{LIST_PATHS[name]}" for name in look.chosen.resources or default_resources(look.api)]
    facts: dict[str, Any] = {
        "found": True,
        "missing": [path for path in paths if f"GET {path}" not in described.operations],
        "missing_fields": sorted(known - {"import_state", *REFERENCES} - shown),
        "new": unread_lists(described, {}),
        "new_fields": sorted(shown - known),
        "not_followed": described.notes,
    }
    labels = {
        "missing": "missing lists that a backup reads",
        "missing_fields": "missing fields of a publication",
        "new": "lists that a backup does not read",
        "new_fields": "fields of a publication that backups keep as residue",
        "not_followed": "not read",
    }
    differences = [
        f"{label}: {outside_text(', '.join(facts[key]), 300)}" for key, label in labels.items() if facts[key]
    ]
    if facts["missing"] or (shown and facts["missing_fields"]):
        todo = "Nothing is lost: the raw records keep every field. Compare the library's swagger.yaml with docs/assumptions.md."
        return warning("; ".join(differences), todo, **facts)
    message = "; ".join(differences) or "has everything that a backup reads, and nothing else"
    return (note if differences else ok)(f"{len(described.operations)} operations; {message}", **facts)


def _known_fields(look: Look) -> set[str]:
    """The documented fields of a publication (service.md#publications)."""
    return {*PUBLICATION_KEYS, "import_state", *(IDENTIFIER_FIELDS if V2(look) else (IDENTIFIER_LIST,))}


@check("clock", needs=TO_ASK)
def clock(look: Look) -> CheckResult:
    """The library's clock and this machine's agree; the quickest response shows it."""
    dated = [answer for answer in look.answers if answer.clock_difference is not None]
    if not look.answers:
        return not_checked("the library did not answer")
    if not dated:
        return note("the service does not send its time (no Date header)", difference_seconds=None)
    quickest = min(dated, key=lambda answer: answer.answered_at - answer.asked_at)
    ahead = (quickest.clock_difference or timedelta()).total_seconds()
    if abs(ahead) <= SAME_SECONDS:
        return ok("this machine and the service agree", difference_seconds=round(ahead))
    message = f"the service's clock is {duration(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} this machine's"
    if abs(ahead) <= WRONG_SECONDS:
        return note(message, difference_seconds=round(ahead))
    return warning(
        message,
        "Set this machine's clock by NTP (see `timedatectl`). The schedule, token ages and times in manifests depend on it.",
        difference_seconds=round(ahead),
    )


SAME_SECONDS, WRONG_SECONDS = 5, 60
"""Differences of clocks: below the first, there is no effect; above the second, times in reports and lifetimes of tokens are wrong."""


# How it lists: pages, their number and order


@check("backup list", needs=SIGNED_IN, requests=1, assumption="A5")
def backup_list(look: Look) -> CheckResult:
    """The list of all publications, with which a backup begins, has as many as the plain list (service.md#lists)."""
    if look.backup_list is None:
        message = "/publications/all did not answer"
        todo = "A backup begins there, and fails after a minute of retries. Run this again. If nothing changes, ask the operators."
        return replace(warning(message, todo), facts={"held": None})
    if look.backup_list.records is None:
        missing = f"/publications/all is not offered ({look.backup_list.status})"
        return differs(missing, "Backups read /publications instead.")
    total, plain = total_of(look.backup_list), look.total
    if total is not None and plain is not None and total != plain:
        return differs(
            f"/publications/all has {total:,} records and /publications {plain:,}",
            "Backups read /publications/all. If it has fewer records, ask the library's operators which ones are missing.",
            costs=total < plain,
        )
    return expected("/publications/all is offered, with as many records as /publications")


@check("form of the backup list", needs=SIGNED_IN, assumption="A15")
def form_of_the_backup_list(look: Look) -> CheckResult:
    """That list is an object with records, in pages, like any other."""
    if look.backup_list is None or look.backup_list.records is None:
        return not_checked("there is no /publications/all")
    if isinstance(look.backup_list.json, list):
        return differs("/publications/all is a bare array", "Backups accept that.")
    if (count := len(look.backup_list.records)) > PER_PAGE:
        return differs(f"/publications/all has {count} records on a page of {PER_PAGE}", "Backups accept that.")
    return expected("/publications/all is an object with records, in pages")


@check("page size", needs=SIGNED_IN, assumption="A20")
def page_size(look: Look) -> CheckResult:
    """A page has 50 records, also where more are requested (service.md#lists)."""
    large, count = look.large_page, len(look.records)
    if large is None:
        return not_checked(f"a request for {2 * PER_PAGE} records a page had no response")
    if large.response.is_client_error:
        message = f"a request for {2 * PER_PAGE} records a page is refused ({large.status}), not cut to {PER_PAGE}"
        return differs(message, f"Backups request {PER_PAGE}.")
    if count > PER_PAGE:
        return differs(
            f"pages have up to {count} records if asked for {2 * PER_PAGE}", f"Backups still request {PER_PAGE}."
        )
    if look.total is not None and look.total <= count:
        return not_checked(f"the library has {count} records, which is one page")
    if count == PER_PAGE:
        return expected(f"pages have at most {PER_PAGE} records: a request for {2 * PER_PAGE} is cut")
    more = f"A backup needs {PER_PAGE / max(1, count):.1f} times as many requests."
    return differs(f"pages have {count} records, not {PER_PAGE}", more, costs=True)


@check("page links", needs=SIGNED_IN, assumption="A21")
def page_links(look: Look) -> CheckResult:
    """Each page names the address of the next one in Link: absolute, on the library's own origin."""
    page, link, total = look.walked, look.walked.header("link"), total_of(look.walked)
    if not link:
        none = differs("no Link header is sent", "Backups count pages until they reach X-Total or an empty page.")
        fits = total is not None and total <= len(page.records or [])
        return not_checked("the library fits on one page, and no Link was sent") if fits else none
    if page.paging is None:
        return problem(
            "the address in Link is invalid", "Backups stop there. Write to the library's operators.", held=False
        )
    if page.next_page is None:
        return not_checked("the library fits on one page")
    here, target = urlsplit(page.address), urlsplit(page.next_page)
    if (target.scheme, target.netloc) != (here.scheme, here.netloc):
        return problem(
            f"Link leads to another origin, {outside_text(f'{target.scheme}://{target.netloc}', 100)}",
            "Backups stop there, because they would send the sign-in to that origin. Correct base_url if the library moved.",
            held=False,
        )
    if not re.search(r"<https?://", link):
        return differs("Link is relative", "Backups accept that.")
    return expected("each page leads to the next one (Link), on the library's own origin")


@check("next page", needs=SIGNED_IN, requests=1, assumption="A21")
def next_page(look: Look) -> CheckResult:
    """The page that Link leads to has the next records."""
    page, following = look.walked, look.second
    if following is None:
        return not_checked("no Link leads to a next page that answers")
    ids = {repr(record.get("id")) for record in page.records or []}
    repeats = any(repr(record.get("id")) in ids for record in following.records or [])
    if following.records is None or repeats:
        what = "repeats records of the first" if repeats else "has no records"
        return problem(
            f"the next page in Link {what}", "Backups stop there. Write to the library's operators.", held=False
        )
    return expected("it has the next records")


@check("page total", needs=SIGNED_IN, assumption="A22")
def page_total(look: Look) -> CheckResult:
    """Every page gives the number of records of the whole list (X-Total), and always the same."""
    page, total = look.walked, total_of(look.walked)
    if page.paging is not None and page.paging.contradiction:
        return differs(
            f"X-Total contradicts itself: {page.paging.contradiction}",
            "A backup is partial, because it is unknown how many records there are.",
            costs=True,
        )
    if total is None:
        meaning = "Only the end of the list then shows that a backup has all records."
        return differs("no X-Total is sent", meaning, costs=True)
    if look.second is not None and look.second.records is not None and total_of(look.second) != total:
        return differs("X-Total is not the same on the next page", "A backup is partial if it changes.", costs=True)
    if total < len(page.records or []):
        return differs("X-Total is smaller than the first page", "A backup is partial.", costs=True)
    return expected(f"each page says how many there are in all (X-Total): {total:,} publications")


@check("page after the last", needs=SIGNED_IN, requests=1, assumption="A19")
def page_after_the_last(look: Look) -> CheckResult:
    """The page after the last one is empty."""
    if look.total is None:
        return not_checked("it is unknown which page is the last")
    answer = look.ask("publications", page=look.total // PER_PAGE + 2, per_page=PER_PAGE)
    if answer is None:
        return not_checked("the request for it had no response")
    if answer.records == []:
        return expected("a page beyond the end is empty")
    if answer.records:
        return differs("a page beyond the end has records", "Backups end where X-Total or Link says so.")
    message = f"the response to a page beyond the end is {answer.status}"
    return differs(message, "Backups request such a page only if nothing else marks the end.")


@check("order", needs=SIGNED_IN, assumption="A14")
def order(look: Look) -> CheckResult:
    """Publications are listed in a stable order, such as that of their numbers."""
    ids = [record["id"] for record in look.records if isinstance(record.get("id"), int)]
    if len(ids) < 2:  # noqa: PLR2004
        return not_checked("there are fewer than two records")
    if ids == sorted(ids):
        return expected("publications are listed by ascending id")
    meaning = "Backups need a stable order, but no particular one."
    return differs("publications are not listed by ascending id", meaning)


@check("search", needs=SIGNED_IN, requests=1, assumption="A16")
def search(look: Look) -> CheckResult:
    """A search by DOI compares the whole value (service.md#search)."""
    values = (doi for record in look.records for doi in _dois(record))
    sought = next((doi for doi in values if 0 < len(doi) <= 200 and doi.isprintable()), "")  # noqa: PLR2004
    if not sought:
        return not_checked("no record of the first page has a DOI")
    answer = look.ask("publications", doi=sought)
    if answer is None or answer.records is None:
        return not_checked("the search had no response")
    if not answer.records:
        meaning = "A migration would not recognise it."
        return differs("a search by DOI does not find the record", meaning, costs=True)
    if any(sought.lower() not in map(str.lower, _dois(record)) for record in answer.records):
        meaning = "Bookferry compares every hit before it counts."
        return differs("a search by DOI also finds other records", meaning)
    return expected("a search by DOI finds the record with it, and no other")


def _dois(record: Mapping[str, Any]) -> list[str]:
    """The DOIs of a record of either version."""
    typed = [
        entry["value"]
        for entry in _entries([record], IDENTIFIER_LIST, {"type", "value"})
        if str(entry["type"]).lower() == "doi"
    ]
    return [doi for doi in (record.get("doi"), *typed) if isinstance(doi, str)]


def _entries(records: Sequence[Mapping[str, Any]], field: str, keys: Collection[str] = ()) -> list[Any]:
    """The entries of a list in the records; with `keys`, only objects that have these."""
    lists = [record.get(field) for record in records]
    entries = [entry for values in lists if isinstance(values, list) for entry in values]
    return [entry for entry in entries if not keys or (isinstance(entry, dict) and set(keys) <= set(entry))]


@check("errors", needs=SIGNED_IN, requests=1, assumption="A12")
def errors(look: Look) -> CheckResult:
    """An unknown record is answered by 404 RecordNotFound, in the documented form (service.md#errors)."""
    answer = look.ask("publications/0")
    if answer is None:
        return not_checked("the request for an unknown record had no response")
    error = answer.json.get("error") if isinstance(answer.json, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    if (answer.status, code) == (HTTPStatus.NOT_FOUND, "RecordNotFound"):
        return expected("an unknown record gives 404 RecordNotFound, in the documented form")
    form = f"code {outside_text(code, 60)}" if code else "in another form"
    meaning = "Only the texts of messages depend on it."
    return differs(f"the response to an unknown record is {answer.status}, {form}", meaning)


# What its records look like


@check("fields", needs=SIGNED_IN, assumption="A1")
def fields(look: Look) -> CheckResult:
    """Publications have the documented fields only (service.md#publications)."""
    unknown = sorted({key for record in look.records for key in record} - _known_fields(look))
    if not look.records:
        return not_checked(NO_RECORDS)
    if unknown:
        message = f"publications have more fields: {outside_text(', '.join(unknown), 200)}"
        return differs(message, "Backups keep them as residue; nothing is lost.")
    return expected("publications have the documented fields only")


NO_RECORDS = "there are no records"
RESIDUE = "Backups keep fields without a column as residue."


@check("categories", needs=SIGNED_IN, assumption="A23")
def categories(look: Look) -> CheckResult:
    """Categories are objects with `id` and `name`."""
    entries = _entries(look.records, "categories")
    if not entries:
        return not_checked("no record of the first page has a category")
    if len(entries) == len(_entries(look.records, "categories", {"id", "name"})):
        return expected("categories are objects with id and name")
    meaning = "Backups also accept texts, and keep anything else as residue."
    return differs("categories are not objects with id and name", meaning)


@check("identifiers", when=V2, needs=SIGNED_IN, assumption="A24")
def identifiers_of_v2(look: Look) -> CheckResult:
    """Version 2 has a flat field for each type of identifier (service.md#identifiers)."""
    present = sorted({field for record in look.records for field in IDENTIFIER_FIELDS if field in record})
    if not look.records:
        return not_checked(NO_RECORDS)
    if IDENTIFIER_LIST not in look.records[0] and present:
        return expected(f"identifiers are flat fields: {', '.join(present)}")
    return differs("v2 does not show identifiers as flat fields", RESIDUE, costs=True)


@check("identifiers", when=V3, needs=SIGNED_IN, assumption="A25")
def identifiers_of_v3(look: Look) -> CheckResult:
    """Version 3 has a list of identifiers, each with type and value (service.md#identifiers)."""
    entries = _entries(look.records, IDENTIFIER_LIST)
    if not look.records:
        return not_checked(NO_RECORDS)
    if not entries and all(IDENTIFIER_LIST in record for record in look.records):
        return not_checked("no record of the first page has an identifier")
    if entries and len(entries) == len(_entries(look.records, IDENTIFIER_LIST, {"type", "value"})):
        return expected("identifiers are a list of objects with type and value")
    return differs("v3 does not show identifiers as a typed list", RESIDUE, costs=True)


@check("empty fields", needs=SIGNED_IN, assumption="A26")
def empty_fields(look: Look) -> CheckResult:
    """A field without a value is there, and null."""
    if len(look.records) < 2:  # noqa: PLR2004
        return not_checked("there are fewer than two records")
    same = all(set(record) == set(look.records[0]) for record in look.records)
    if same or any(value is None for record in look.records for value in record.values()):
        return expected("fields without a value are there, and null")
    return differs("fields without a value are left out", "Backups treat null and absent alike.")


@check("import_state", needs=SIGNED_IN, assumption="A28")
def import_state(look: Look) -> CheckResult:
    """Version 2 shows `import_state`, version 3 does not."""
    if not look.records:
        return not_checked(NO_RECORDS)
    shown = any("import_state" in record for record in look.records)
    message = f"import_state is {'' if shown else 'not '}in the records of {look.api}"
    return expected(message) if shown == V2(look) else differs(message, "Backups keep it as residue.")


@check("published_on", needs=SIGNED_IN)
def published_on(look: Look) -> CheckResult:
    """`published_on` is a day, YYYY-MM-DD (service.md#publications)."""
    given = [value for record in look.records if (value := record.get("published_on")) not in (None, "")]
    odd = [value for value in given if not isinstance(value, str) or day(value) is None]
    if not given:
        return not_checked("no record of the first page has a date")
    if odd:
        message = f"{len(odd)} of {len(given)} values are no days, for example {outside_text(repr(odd[0]), 40)}"
        return differs(message, "Backups keep them as text beside an empty date.")
    return expected("is a day, YYYY-MM-DD")


@check("file addresses", needs=SIGNED_IN, assumption="A62")
def file_addresses(look: Look) -> CheckResult:
    """Files come with an address to fetch them from (service.md#assets)."""
    assets = [asset for asset in _entries(look.records, "assets") if isinstance(asset, dict)]
    addresses = [asset["url"] for asset in assets if isinstance(asset.get("url"), str)]
    if not assets:
        return not_checked("no record of the first page has a file")
    if not addresses:
        meaning = "Their content cannot be fetched. Does the token have `assets:read`? `bookferry login` asks for it."
        return differs("files have no address", meaning, costs=True)
    seconds = whole_number(parse_qs(urlsplit(addresses[0]).query).get("X-Amz-Expires", [""])[0])
    return expected(f"files have an address to fetch them from{f', good for {seconds:,} s' if seconds else ''}")


@check("deprecation", needs=SIGNED_IN, assumption="A37")
def deprecation(look: Look) -> CheckResult:
    """Version 2 names what is deprecated in a header, version 3 has nothing to name (service.md#deprecation)."""
    sent = outside_text(look.page.header("x-api-deprecation"), 100)
    message = f"{look.api} sends {f'X-API-Deprecation: {sent}' if sent else 'no X-API-Deprecation header'}"
    return expected(message) if bool(sent) == V2(look) else differs(message, "Nothing depends on it.")
