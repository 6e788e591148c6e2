"""`bookferry nightly`: a whole night of one library, as a timer calls it: back up, verify a part, prune."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.text import Text

from cli.backup import backup_tenant
from cli.boundary import explained_error
from cli.options import settings_of
from cli.output import Answer, print_answer, say, verdict
from cli.retention import prune_snapshots
from cli.verification import verify_snapshots
from pipelines.errors import ExitStatus
from pipelines.service.redaction import redact
from pipelines.store.encryption import personal_keys
from pipelines.store.snapshots.snapshots import newest_complete
from pipelines.store.stores import open_data

PART = "1/7"
"""The stored files that a night reads again: a different seventh each day, so that a week reads all."""

_BY_HARM = (
    ExitStatus.COMPLETE,
    ExitStatus.PARTIAL,
    ExitStatus.DIFFERENCES,
    ExitStatus.SAFETY_LIMIT,
    ExitStatus.FAILED,
    ExitStatus.USAGE,
    ExitStatus.SIGN_IN,
)

_WORDS = {
    "backup": "backed up",
    "verify": "verified",
    "prune": "pruned",
}


class _Night:
    """The steps so far."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self.statuses: dict[str, ExitStatus] = {}
        self.documents: dict[str, Mapping[str, Any] | None] = {}
        self.left_out: dict[str, str] = {}

    def run(self, step: str, action: Callable[[], Answer]) -> None:
        """Run a step. Its error is a part of the result, so that what came before it is not lost."""
        try:
            answer = action()
            self.statuses[step], self.documents[step] = answer.status, answer.document
            if not self._as_json:
                print_answer(answer, as_json=False)
        except Exception as error:
            explained = explained_error(error)
            if explained is None:
                raise
            message = redact(str(explained))
            say(f"error: {step}: {message}")
            self.statuses[step] = explained.exit_status
            self.documents[step] = {"error": message, "exit_status": int(explained.exit_status)}

    def leave_out(self, step: str, reason: str) -> None:
        """Note why a step does not run."""
        self.left_out[step] = reason
        self.documents[step] = {"left_out": reason}

    @property
    def is_good(self) -> bool:
        """Whether all steps so far ended well."""
        return self.status is ExitStatus.COMPLETE

    @property
    def status(self) -> ExitStatus:
        """The worst status of the steps."""
        return max(self.statuses.values(), key=_BY_HARM.index)


def run_night(*, tenant: str, config: str | None, json: bool) -> Answer:
    """Back up a library, verify its newest complete snapshot, and prune. Nothing is removed after a night that is not good so far."""
    settings, night = settings_of(config), _Night(as_json=json)
    night.run("backup", lambda: backup_tenant(settings, tenant))
    if newest_complete(open_data(settings, personal_keys(settings)).snapshots(tenant)) is None:
        night.leave_out("verify", "there is no complete snapshot")
    else:
        night.run("verify", lambda: verify_snapshots(settings, snapshot=tenant, read_data=PART))
    if settings.retention is None:
        night.leave_out("prune", "there is no [retention]")
    elif not night.is_good:
        night.leave_out("prune", "after such a night nothing is removed")
    else:
        night.run("prune", lambda: prune_snapshots(settings, tenant=tenant, dry_run=False))
    document = {"tenant": tenant, "ok": night.is_good, "exit_status": int(night.status), **night.documents}
    return Answer(document, [_last_line(tenant, night)], night.status)


def _last_line(tenant: str, night: _Night) -> Text:
    said = [
        _WORDS[step] if status is ExitStatus.COMPLETE else f"not {_WORDS[step]} ({_reason(step, status)})"
        for step, status in night.statuses.items()
    ]
    said += [f"not {_WORDS[step]}, because {reason}" for step, reason in night.left_out.items()]
    word = "Good night:" if night.is_good else "NOT GOOD:"
    return verdict(word, f"{tenant}: {'; '.join(said)}.", good=night.is_good)


def _reason(step: str, status: ExitStatus) -> str:
    if status is ExitStatus.PARTIAL:
        return "partial"
    return "damaged" if (step, status) == ("verify", ExitStatus.DIFFERENCES) else f"exit {int(status)}"
