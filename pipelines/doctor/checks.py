"""All that `bookferry doctor` checks, in the order of its output.

Each check has its data above it: its name, whom it concerns (`when`), what must be well before (`needs`), and the requests that it may
add. Its first sentence says what holds where all is well. It reads a `Look`, and returns what a person reads, with what to do next. What
nobody would act on is no check: `describe` shows how a library's records and description differ from what is documented.
"""

from __future__ import annotations

import shlex
import shutil
import stat
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit
from uuid import uuid4

from pipelines.doctor import backup_age
from pipelines.doctor.findings import (
    CheckResult,
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
from pipelines.humanize import counted, duration, size
from pipelines.inventory import DAYS_OF_WARNING, LAST_DAY_OF_V2, NOT_LISTED, RESOURCES, default_resources
from pipelines.scopes import abilities
from pipelines.service.end_of_v2 import end_of_v2_explained
from pipelines.service.redaction import outside_text
from pipelines.service.sign_in.sign_in_state import sign_in_state
from pipelines.service.sign_in.stored_sign_in import local_time
from pipelines.service.sign_in.token_store import SIGN_INS_FILE, LeaseTakenError, open_tokens
from pipelines.service_limits import REQUESTS_PER_MINUTE
from pipelines.settings.retention_and_notify import Hook
from pipelines.sign_in_health import warning as sign_in_warning
from pipelines.state.local import LocalState
from pipelines.store.durable import storage_errors
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
    return ok(f"{look.settings.path}: {look.chosen.base_url}, {look.api}")


@check("secrets")
def secrets(look: Look) -> CheckResult:
    """Each environment variable that the tenant names has a value that can be used."""
    look.settings.check_sign_in(look.tenant)
    key = personal_keys(look.settings).to_write()
    people = f"; users' data is encrypted with the personal key {key.fingerprint}" if key else ""
    return ok(f"all that are named can be used{people}")


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
        folders.append((settings.tokens_folder(), (SIGN_INS_FILE,), None))
    opened, commands = list[str](), list[str]()
    for folder, names, sharing in folders:
        if entries := wrong_entries(folder, names, sharing):
            who = "others can open, or the group cannot use" if sharing else "other users of this machine can open"
            mode = f"mode {stat.S_IMODE(folder.stat().st_mode):04o}"
            opened.append(f"{who} {', '.join(entry.name for entry in entries)} in {folder} ({mode})")
            commands.append(_closing(folder, sharing, entries))
    if not opened:
        return ok(f"{settings.data}: only {f'this user and the group {group}' if group else 'this user'} can open it")
    share = "" if group else " To share data, set `group` in bookferry.toml."
    return warning("; ".join(opened), f"Run as their owner or as root: {' and '.join(commands)}.{share}")


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
    todo = (
        "Free some space, or name a folder on another disk as `data` (as `work`, where the data is in a bucket). "
        "`bookferry snapshots list` lists the snapshots."
    )
    if free < needed:
        return problem(f"{message}; a backup may need {size(needed)}", todo)
    if free < 5 * needed:
        return warning(f"{message}: space for few more snapshots", todo)
    return ok(message)


MIN_FREE_BYTES = 100 * 1000 * 1000
"""Bytes that even a small backup may need: tables, temporary files of sorting, Dagster's history."""


@check("database")
def database(look: Look) -> CheckResult:
    """The state can be read and written: it has the budget, and without that no request may be sent (I1)."""
    state = look.data.state
    if not isinstance(state, LocalState):
        return _shared_state(cast("PostgresState", state))
    with closing(state.open(look.around.clock)) as store, store.transaction():
        return ok(f"{state.path} can be read and written")


def _shared_state(state: PostgresState) -> CheckResult:
    message = f"the state in {state.place} answers"
    if (fsync := state.fsync()) != "on":
        return warning(
            f"{message}; it has fsync = {fsync}, so a loss of power can cost the journal of writes",
            "Turn fsync on in the server's configuration.",
        )
    return ok(message)


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

        Database(look.settings.postgres() or "").check()
    return ok(f"{store.place} answers")


@check("iceberg", when=lambda look: look.settings.iceberg is not None)
def iceberg(look: Look) -> CheckResult:
    """The catalogue of Iceberg tables can be used."""
    chosen = catalogue_settings(look.settings)
    check_catalogue(chosen, look.settings.data)
    return ok(f"{chosen.place} can be used")


@check("notify")
def notify(look: Look) -> CheckResult:
    """Somebody learns of a backup that failed, and of one that never started. Nothing is sent."""
    own = look.settings.notify_of(look.tenant)
    todo = "Write a table [notify] with success and failure into bookferry.toml (docs/operating.md, Notifications)."
    try:
        success, failure = own.hook("success"), own.hook("failure")
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
    other_tenants = [name for name in look.settings.tenants if name != look.tenant]
    shared = [name for name in other_tenants if look.settings.notify_of(name).success == own.success]
    if isinstance(own.success, str) and shared:
        return warning(
            f"{message}; {', '.join(shared)} and {look.tenant} share one address, so each hides a missing run of the other",
            f"Give each a table [tenants.{look.tenant}.notify] with an address of its own.",
        )
    return ok(message)


def _is_missing(hook: Hook, look: Look) -> bool:
    name = hook.command[0] if hook.command else ""
    where = str(look.settings.path.parent / name) if "/" in name else name
    return bool(name) and shutil.which(where) is None


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
    if state.problem is not None:
        return problem(state.problem, exit_status=ExitStatus.SIGN_IN)
    with (
        suppress(LeaseTakenError),  # another process is renewing it now, so it can write
        open_tokens(look.settings, look.tenant).leased(clock, seconds=0.0) as leased,
    ):
        leased.write(leased.read())
    if state.refreshing_since is not None:
        lost = f"the response to its renewal at {local_time(state.refreshing_since)} was lost; the next use renews it again"
        return warning(lost, again)
    if (advice := sign_in_warning(state, now)) is not None:
        return warning(advice, again)
    since = f"; signed in on {local_time(state.signed_in_at)}" if state.signed_in_at is not None else ""
    return ok(f"can be used, and renewed{since}")


@check("scopes", when=V3, needs=("token",))
def scopes(look: Look) -> CheckResult:
    """The sign-in has the scopes for the nightly backup; whether it has those for a migration is said, too (service.md#scopes)."""
    granted = sign_in_state(look.settings, look.tenant, look.around.clock).scopes
    again = f"Run `bookferry login {look.tenant}` and allow them on the consent page."
    if not granted:
        return note("the library did not name the scopes of the token; the checks below try what it may read")
    backup, migration = abilities(granted)
    if not backup.works:
        return problem(f"backup: {backup.sentence}", again, exit_status=ExitStatus.SIGN_IN)
    if backup.lacks:
        return warning(f"backup: {backup.sentence}", again)
    return ok(f"backup: {backup.sentence}; migration into it: {migration.sentence}")


# The library


@check("rate", needs=TO_ASK)
def rate(look: Look) -> CheckResult:
    """No more requests are sent than the service allows automated access (I1)."""
    _, limit = look.settings.budget_of(look.tenant)
    if limit > REQUESTS_PER_MINUTE:
        return warning(
            f"requests_per_minute is {limit:,}, but the service allows automated access about {REQUESTS_PER_MINUTE}",
            f"Set requests_per_minute = {REQUESTS_PER_MINUTE} unless the library's operators granted more.",
        )
    return ok(f"{limit} requests in any 60 seconds")


@check("service", needs=TO_ASK, requests=8)
def service(look: Look) -> CheckResult:
    """The library answers the list with which every backup begins, whether it accepts the sign-in or not."""
    try:
        page = look.page
    except SignInError:
        return ok("answers")
    if page.status in REFUSALS:
        return ok("answers")
    if page.error is not None:
        with end_of_v2_explained(look.client, look.tenant):
            raise page.error
    if page.records is None:
        return problem(
            f"GET {outside_text(page.address)} returned 200, but no list of records.",
            "Is base_url the library's address? Add /api to it and open it in a browser: the library's documentation should appear.",
        )
    path = urlsplit(page.address).path
    return ok(f"GET {path} is answered, in {(page.answered_at - page.asked_at) / timedelta(milliseconds=1):,.0f} ms")


@check("sign-in", needs=("service",))
def sign_in(look: Look) -> CheckResult:
    """The library accepts the sign-in, and lets this account read publications."""
    if look.page.error is not None:
        return failed(look.page.error)
    return ok(f"accepted; `bookferry whoami {look.tenant}` says as whom" if V3(look) else "accepted")


@check("end of v2", when=V2)
def end_of_v2(look: Look) -> CheckResult:
    """Version 2 is not shut down soon (service.md#shutdown)."""
    days_left = (LAST_DAY_OF_V2 - look.around.clock.now().date()).days
    todo = 'Move to v3: set api = "v3" for this tenant (or for another entry with the same base_url), then run `bookferry login`.'
    if days_left < 0:
        return warning(f"v2 was due to be shut down {-days_left} days ago, and may stop at any moment", todo)
    message = f"v2 is shut down at the end of 2026: {counted(days_left, 'day')} left"
    if days_left > DAYS_OF_WARNING:
        return note(message, todo)
    return warning(message, f"{todo} Make a last backup of v2 before that day.")


@check("other lists", needs=SIGNED_IN, requests=6)
def other_lists(look: Look) -> CheckResult:
    """The account may read every list that a backup reads, and a backup reads every list that the library has."""
    chosen = look.chosen.resources
    backed_up = chosen or default_resources(look.api)
    answers = {
        name: None if (look.api, name) in NOT_LISTED else look.list_of(name)
        for name in RESOURCES[1:]
        if name in (chosen or RESOURCES)
    }
    has = [name for name, answer in answers.items() if answer is not None and answer.records is not None]
    refused = {
        name: outside_text(answer.header("www-authenticate"), 200)
        for name, answer in answers.items()
        if name in backed_up and answer is not None and answer.status in REFUSALS
    }
    if refused:
        scopes = " ".join(filter(None, refused.values()))
        return warning(
            f"this account may not read {', '.join(refused)}{f' ({scopes})' if scopes else ''}: backups leave them out, and report that",
            "Give the account that right, or sign in again with that scope: `bookferry login`.",
        )
    if unread := [name for name in has if name not in backed_up]:
        names = ", ".join(f'"{name}"' for name in (*backed_up, *unread))
        return warning(
            f"this library lists {', '.join(unread)}, which v2 does not document: the nightly backup does not read them",
            f"To back them up, write resources = [{names}] into [tenants.{look.tenant}].",
        )
    if lacks := [
        f"{name} ({answer.status})" if answer else name for name, answer in answers.items() if name not in has
    ]:
        todo = 'To back them up, add a tenant of the same library with api = "v3".' if V2(look) else ""
        return note(f"this library does not list {', '.join(lacks)}: backups have none", todo)
    return ok(f"{', '.join(has) or 'none'} can be read")


@check("clock", needs=TO_ASK)
def clock(look: Look) -> CheckResult:
    """The library's clock and this machine's agree; the quickest response shows it."""
    dated = [answer for answer in look.answers if answer.clock_difference is not None]
    if not dated:
        return not_checked("the library did not answer with its time")
    quickest = min(dated, key=lambda answer: answer.answered_at - answer.asked_at)
    ahead = (quickest.clock_difference or timedelta()).total_seconds()
    if abs(ahead) <= WRONG_SECONDS:
        return ok("this machine and the service agree")
    return warning(
        f"the service's clock is {duration(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} this machine's",
        "Set this machine's clock by NTP (see `timedatectl`). The schedule, token ages and times in manifests depend on it.",
    )


WRONG_SECONDS = 60
"""Difference of clocks above which times in reports and lifetimes of tokens are wrong."""


# How it lists: what stops a backup, or makes it partial


@check("page links", needs=SIGNED_IN, requests=1)
def page_links(look: Look) -> CheckResult:
    """Link leads from the first page to the next records, on the library's own origin; without Link, pages are counted."""
    page, following = look.page, look.second
    ask = "Backups stop there. Write to the library's operators."
    if page.header("link") and page.paging is None:
        return problem("the address in Link is invalid", ask)
    if page.next_page is None:
        return ok("none is needed" if page.header("link") else "none is sent: backups count pages")
    page_address, next_address = urlsplit(page.address), urlsplit(page.next_page)
    if (next_address.scheme, next_address.netloc) != (page_address.scheme, page_address.netloc):
        return problem(
            f"Link leads to another origin, {outside_text(f'{next_address.scheme}://{next_address.netloc}', 100)}",
            "Backups stop there, because they would send the sign-in to that origin. Correct base_url if the library moved.",
        )
    if following is None:
        return not_checked("the next page did not answer")
    ids = {repr(record.get("id")) for record in page.records or []}
    repeats = any(repr(record.get("id")) in ids for record in following.records or [])
    if repeats or following.records is None:
        return problem(f"the next page in Link {'repeats records of the first' if repeats else 'has no records'}", ask)
    return ok("each page leads to the next one")


@check("page total", needs=SIGNED_IN)
def page_total(look: Look) -> CheckResult:
    """Every page gives the number of records of the whole list (X-Total), and always the same."""
    page, total = look.page, total_of(look.page)
    if total is None:
        return note("no X-Total is sent: a backup reads a list twice, unless Link names its last page")
    wrong = ""
    if look.second is not None and look.second.records is not None and total_of(look.second) != total:
        wrong = "is not the same on the next page"
    elif total < len(page.records or []):
        wrong = "is smaller than the first page"
    if wrong:
        return warning(f"X-Total {wrong}", "Backups are partial where that stays so. Write to the library's operators.")
    return ok(f"{total:,} publications (X-Total)")


@check("file addresses", needs=SIGNED_IN)
def file_addresses(look: Look) -> CheckResult:
    """Files come with an address to fetch them from (service.md#assets)."""
    lists = [record.get("assets") for record in look.page.records or []]
    assets = [asset for entries in lists if isinstance(entries, list) for asset in entries if isinstance(asset, dict)]
    if not assets:
        return not_checked("no record of the first page has a file")
    if not any(isinstance(asset.get("url"), str) for asset in assets):
        todo = "Their content cannot be fetched. Does the token have `assets:read`? `bookferry login` asks for it."
        return warning("files have no address", todo)
    return ok("files have an address to fetch them from")
