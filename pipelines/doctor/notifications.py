"""The check of `[notify]`: whether somebody is notified of a backup that fails, or that never began. Makes no call."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from urllib.parse import urlsplit

from pipelines.doctor.findings import CheckResult, note, ok, warning
from pipelines.errors import ConfigurationError
from pipelines.settings.schedule import Hook
from pipelines.settings.settings import Settings

NAME = "notify"

_WRITE_IT = (
    "Write a table [notify] with success_env and failure_env into bookferry.toml (docs/operating.md, Notifications)."
)

_BOTH = "Name both: a missing call on success reveals a backup that never began; the call on failure gives the reason."


def check_notifications(settings: Settings, tenant: str, environ: Mapping[str, str]) -> CheckResult:
    """The receivers of reports about a tenant's runs."""
    try:
        success = settings.notify_of(tenant).hook("success", environ)
        failure = settings.notify_of(tenant).hook("failure", environ)
    except ConfigurationError as error:
        return warning(NAME, f"no notification is possible: {error}", _WRITE_IT)
    if success is None and failure is None:
        return note(NAME, "no notification of a backup that fails, or that never began", _WRITE_IT)
    if lost := [
        hook.command[0]
        for hook in (success, failure)
        if hook is not None and not _command_exists(hook, settings, environ)
    ]:
        return warning(NAME, f"no such command: {', '.join(lost)}", "Correct it in [notify], or install it.")
    message = f"on success {_display_text(success)}, on failure {_display_text(failure)}"
    if success is None or failure is None:
        return note(NAME, message, _BOTH)
    if shared := _sharing(settings, tenant):
        return warning(
            NAME,
            f"{message}; {', '.join(shared)} and {tenant} share one switch, so a backup of one hides that the other does not run",
            f"Give each a table [tenants.{tenant}.notify] with a switch of its own.",
        )
    return ok(NAME, message)


def _command_exists(hook: Hook, settings: Settings, environ: Mapping[str, str]) -> bool:
    if not hook.command:
        return True
    name = hook.command[0]
    where = str(settings.path.parent / name) if "/" in name else name
    return shutil.which(where, path=environ.get("PATH")) is not None


def _display_text(hook: Hook | None) -> str:
    """The receiver of a hook; of an address, which is a secret, only the host."""
    if hook is None:
        return "nobody"
    return f"the command {hook.command[0]}" if hook.command else f"the address at {urlsplit(hook.address).hostname}"


def _sharing(settings: Settings, tenant: str) -> list[str]:
    """Other tenants whose success is reported to the same address."""
    mine = settings.notify_of(tenant)
    if not (mine.success_env or (mine.success and mine.success.address)):
        return []
    return [
        name
        for name in settings.tenants
        if name != tenant
        and (settings.notify_of(name).success, settings.notify_of(name).success_env) == (mine.success, mine.success_env)
    ]
