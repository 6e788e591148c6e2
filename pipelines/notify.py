"""Notifications: one call for each run, to the success hook (a dead man's switch) or the failure hook in bookferry.toml.

A call does not change the result of the run. A killed run makes no call, and a dead man's switch then raises the alarm.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from pipelines.python_process import SAFE_PATH_VARIABLE
from pipelines.service.redaction import redact
from pipelines.service.webhook import TRIES, call
from pipelines.settings.retention_and_notify import Occasion
from pipelines.settings.settings import Settings
from pipelines.settings.tenant import TenantSettings
from pipelines.store.maintenance.results import SnapshotVerification
from pipelines.store.snapshots.snapshots import Snapshot

MAX_CHARACTERS = 2000
"""Most characters of a message in a notification."""


class Ending(msgspec.Struct, kw_only=True, frozen=True):
    """The end of a run. Its fields are the members of the JSON, and BOOKFERRY_... variables of a command."""

    job: str
    """backup, verification or retention."""
    result: str
    """complete, partial, failed, stopped or damaged."""
    tenant: str = ""
    """Empty if the run was for all tenants."""
    snapshot: str = ""
    message: str = ""
    run: str = ""
    """Dagster's id of the run, if Dagster ran it."""

    @property
    def occasion(self) -> Occasion:
        """Only a complete backup is a success."""
        return "success" if self.result == "complete" else "failure"

    @classmethod
    def of_backup(cls, snapshot: Snapshot, run: str = "") -> Ending:
        """The end of a backup that published a snapshot."""
        manifest = snapshot.manifest
        return cls(
            job="backup",
            result="complete" if manifest.complete else "partial",
            tenant=manifest.tenant,
            snapshot=manifest.snapshot,
            message=" ".join([*manifest.problems, *manifest.news]),
            run=run,
        )

    @classmethod
    def of_verification(cls, verification: SnapshotVerification) -> Ending:
        """The end of a verification that found damage."""
        message = " ".join(verification.problems[:20])
        return cls(
            job="verification",
            result="damaged",
            tenant=verification.tenant,
            snapshot=verification.snapshot,
            message=message,
        )


def notify(
    settings: Settings,
    ending: Ending,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> str | None:
    """Make the call for this ending, if one is configured. Returns the error of the call as text, or None."""
    try:
        hook = settings.notify_of(ending.tenant).hook(ending.occasion)
        if hook is None:
            return None
        facts = {name: _clean(value) for name, value in msgspec.to_builtins(ending).items()}
        document = {**facts, "ok": ending.occasion == "success", "at": datetime.now(UTC).isoformat(timespec="seconds")}
        call(
            hook,
            msgspec.json.encode(document),
            {
                **_environment(settings),
                **{f"BOOKFERRY_{name.upper()}": value for name, value in facts.items()},
            },
            folder=settings.path.parent,
            sleep=sleep,
            tries=1 if ending.result == "stopped" else TRIES,  # a person who stops a run does not want to wait
        )
    except Exception as error:  # noqa: BLE001  an error of the call must not change the result of the run
        of = f" of {ending.tenant}" if ending.tenant else ""
        return redact(f"The {ending.job}{of} ({ending.result}) could not be reported: {error}")
    return None


def _clean(text: str) -> str:
    """The text without secrets (I10), and without the null character, which no environment variable can hold."""
    return redact(text.replace("\0", ""))[:MAX_CHARACTERS]


def _environment(settings: Settings) -> dict[str, str]:
    """The environment without the variables that bookferry.toml names, which hold secrets (I10), and without one of ours for Python."""
    tenants = settings.tenants.values()
    named = {getattr(tenant, key) for tenant in tenants for key in TenantSettings.model_fields if key.endswith("_env")}
    named = named.union(settings.notify.variables, *(tenant.notify.variables for tenant in tenants if tenant.notify))
    named |= {*settings.iceberg.variables.values()} if settings.iceberg else set()
    return {
        name: value
        for name, value in os.environ.items()
        if name not in {*named, settings.postgres_env, settings.personal_key_env, SAFE_PATH_VARIABLE}
    }
