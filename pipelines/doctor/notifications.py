"""The check of `[notify]`: whether anybody hears of a backup that fails, or that never began. Calls nobody."""

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

_BOTH = "Only whoever waits for the call on success misses a backup that never began; only the call on failure says why one failed."


def check_notifications(settings: Settings, tenant: str, environ: Mapping[str, str]) -> CheckResult:
    """Whom the runs of a tenant call on success and on failure."""
    try:
        success = settings.notify_of(tenant).hook("success", environ)
        failure = settings.notify_of(tenant).hook("failure", environ)
    except ConfigurationError as error:
        return warning(NAME, f"nobody can be told: {error}", _WRITE_IT)
    if success is None and failure is None:
        return note(NAME, "nobody is told of a backup that fails, or that never began", _WRITE_IT)
    if lost := [
        hook.command[0]
        for hook in (success, failure)
        if hook is not None and not _command_exists(hook, settings, environ)
    ]:
        return warning(NAME, f"no such command: {', '.join(lost)}", "Correct it in [notify], or install it.")
    said = f"on success {_display_text(success)}, on failure {_display_text(failure)}"
    if success is None or failure is None:
        return note(NAME, said, _BOTH)
    if shared := _sharing(settings, tenant):
        return warning(
            NAME,
            f"{said}; {', '.join(shared)} and {tenant} hold one switch, so that either hides that the other does not run",
            f"Give each a table [tenants.{tenant}.notify] with a switch of its own.",
        )
    return ok(NAME, said)


def _command_exists(hook: Hook, settings: Settings, environ: Mapping[str, str]) -> bool:
    if not hook.command:
        return True
    name = hook.command[0]
    where = str(settings.path.parent / name) if "/" in name else name
    return shutil.which(where, path=environ.get("PATH")) is not None


def _display_text(hook: Hook | None) -> str:
    """Whom a hook calls; of an address, which is a secret, only the host."""
    if hook is None:
        return "nobody"
    return f"the command {hook.command[0]}" if hook.command else f"the address at {urlsplit(hook.address).hostname}"


def _sharing(settings: Settings, tenant: str) -> list[str]:
    """Other tenants whose success goes to the same address."""
    mine = settings.notify_of(tenant)
    if not (mine.success_env or (mine.success and mine.success.address)):
        return []
    return [
        name
        for name in settings.tenants
        if name != tenant
        and (settings.notify_of(name).success, settings.notify_of(name).success_env) == (mine.success, mine.success_env)
    ]
