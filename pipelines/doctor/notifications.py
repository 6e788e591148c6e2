"""The check of `[notify]`: whether somebody learns of a backup that failed or never started. Sends no notification."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from urllib.parse import urlsplit

from pipelines.doctor.findings import CheckResult, note, ok, warning
from pipelines.errors import ConfigurationError
from pipelines.settings.schedule import Hook
from pipelines.settings.settings import Settings

NAME = "notify"

_WRITE_IT = "Write a table [notify] with success and failure into bookferry.toml (docs/operating.md, Notifications)."

_BOTH = "Only a missing call on success reveals a backup that never started; only the call on failure gives the reason of a failure."


def check_notifications(settings: Settings, tenant: str, environ: Mapping[str, str]) -> CheckResult:
    """The hooks that the runs of a tenant call on success and on failure."""
    try:
        success = settings.notify_of(tenant).hook("success", environ)
        failure = settings.notify_of(tenant).hook("failure", environ)
    except ConfigurationError as error:
        return warning(NAME, f"no notification can be sent: {error}", _WRITE_IT)
    if success is None and failure is None:
        return note(NAME, "nobody is notified of a backup that failed or never started", _WRITE_IT)
    if missing := [
        hook.command[0]
        for hook in (success, failure)
        if hook is not None and not _command_exists(hook, settings, environ)
    ]:
        return warning(NAME, f"no such command: {', '.join(missing)}", "Correct it in [notify], or install it.")
    message = f"on success {_display_text(success)}, on failure {_display_text(failure)}"
    if success is None or failure is None:
        return note(NAME, message, _BOTH)
    if shared := _sharing(settings, tenant):
        return warning(
            NAME,
            f"{message}; {', '.join(shared)} and {tenant} share one address, so each hides a missing run of the other",
            f"Give each a table [tenants.{tenant}.notify] with an address of its own.",
        )
    return ok(NAME, message)


def _command_exists(hook: Hook, settings: Settings, environ: Mapping[str, str]) -> bool:
    if not hook.command:
        return True
    name = hook.command[0]
    where = str(settings.path.parent / name) if "/" in name else name
    return shutil.which(where, path=environ.get("PATH")) is not None


def _display_text(hook: Hook | None) -> str:
    """The target of a hook; only the host of an address, because the address is a secret (I10)."""
    if hook is None:
        return "nobody"
    return f"the command {hook.command[0]}" if hook.command else f"the address at {urlsplit(hook.address).hostname}"


def _sharing(settings: Settings, tenant: str) -> list[str]:
    """Other tenants with the same address for success."""
    own = settings.notify_of(tenant).success
    if not isinstance(own, str):
        return []
    return [name for name in settings.tenants if name != tenant and settings.notify_of(name).success == own]
