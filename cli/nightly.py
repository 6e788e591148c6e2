"""`bookferry nightly`: a whole night of one library, as a timer calls it: back up, verify a part, prune."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from rich.text import Text

from cli.backup import backup_tenant
from cli.boundary import explained_error
from cli.options import settings_of
from cli.output import Answer, print_answer, say, verdict
from cli.retention import prune_snapshots
from cli.verification import verify_snapshots
from pipelines.errors import ExitStatus, worst
from pipelines.service.redaction import redact
from pipelines.store.snapshots.snapshots import newest_complete
from pipelines.store.stores import open_data

PART = "1/7"
"""The stored files that a night reads again: a different seventh each day, so that a week reads all."""

_WORDS = {
    "backup": "backed up",
    "verify": "verified",
    "prune": "pruned",
}


def run_night(*, tenant: str, config: str | None, json: bool) -> Answer:
    """Back up a library, verify its newest complete snapshot, and prune. Nothing is removed after a night that is not good so far."""
    settings = settings_of(config)
    data = open_data(settings)
    steps = {"backup": _step("backup", partial(backup_tenant, settings, tenant), as_json=json)}
    left_out = {}
    if newest_complete(data.snapshots(tenant)) is None:
        left_out["verify"] = "there is no complete snapshot"
    else:
        verify = partial(verify_snapshots, settings, snapshot=tenant, read_data=PART)
        steps["verify"] = _step("verify", verify, as_json=json)
    if settings.retention is None:
        left_out["prune"] = "there is no [retention]"
    elif not _is_good(steps):
        left_out["prune"] = "after such a night nothing is removed"
    else:
        prune = partial(prune_snapshots, settings, tenant=tenant, dry_run=False)
        steps["prune"] = _step("prune", prune, as_json=json)
    status = worst(answer.status for answer in steps.values())
    document = {
        "tenant": tenant,
        "ok": _is_good(steps),
        "exit_status": int(status),
        **{name: answer.document for name, answer in steps.items()},
        **{name: {"left_out": reason} for name, reason in left_out.items()},
    }
    return Answer(document, [_last_line(tenant, steps, left_out)], status)


def _step(name: str, action: Callable[[], Answer], *, as_json: bool) -> Answer:
    """Take a step. Its error is a part of the result, so that what came before it is not lost."""
    try:
        answer = action()
    except Exception as error:
        explained = explained_error(error)
        if explained is None:
            raise
        message = redact(str(explained))
        say(f"error: {name}: {message}")
        document = {"error": message, "exit_status": int(explained.exit_status)}
        return Answer(document, status=explained.exit_status)
    if not as_json:
        print_answer(answer, as_json=False)
    return answer


def _is_good(steps: Mapping[str, Answer]) -> bool:
    return all(answer.status is ExitStatus.COMPLETE for answer in steps.values())


def _last_line(tenant: str, steps: Mapping[str, Answer], left_out: Mapping[str, str]) -> Text:
    results = [
        _WORDS[name] if answer.status is ExitStatus.COMPLETE else f"not {_WORDS[name]} ({_reason(name, answer.status)})"
        for name, answer in steps.items()
    ]
    results += [f"not {_WORDS[name]}, because {reason}" for name, reason in left_out.items()]
    word, made = "Good night:" if _is_good(steps) else "NOT GOOD:", steps["backup"].document
    snapshot = f" Snapshot {tenant}/{made['snapshot']}." if "snapshot" in made else ""
    return verdict(word, f"{tenant}: {'; '.join(results)}.{snapshot}", good=_is_good(steps))


def _reason(step: str, status: ExitStatus) -> str:
    if status is ExitStatus.PARTIAL:
        return "partial"
    return "damaged" if (step, status) == ("verify", ExitStatus.DIFFERENCES) else f"exit {int(status)}"
