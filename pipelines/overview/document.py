"""The state of all libraries as a JSON document."""

from __future__ import annotations

from typing import Any

import msgspec

from pipelines.errors import ExitStatus
from pipelines.overview.libraries import Library, Overview


def document(overview: Overview) -> dict[str, Any]:
    """The state as a JSON document. Scripts rely on its keys."""
    return {
        "ok": overview.exit_status is ExitStatus.COMPLETE,
        "next_run": overview.next_run.isoformat(timespec="seconds"),
        "libraries": [_library_document(library) for library in overview.libraries],
        "plans": msgspec.to_builtins(overview.plans),
        "incomplete": msgspec.to_builtins(overview.incomplete),
    }


def _library_document(library: Library) -> dict[str, Any]:
    backup, verified, drilled = library.backup, library.verified, library.drilled
    return {
        "tenant": library.tenant,
        "base_url": library.base_url,
        "api": library.api,
        "ok": not library.problems,
        "backup": backup
        and {
            "snapshot": backup.manifest.snapshot,
            "finished_at": backup.manifest.finished_at,
            "age_seconds": round(library.backup_age or 0.0),
            "records": sum(backup.counts.values()),
            "counts": backup.counts,
            "files": backup.manifest.files.kept,
            "not_read": backup.not_read,
        },
        "last_verified": verified and {"snapshot": verified.snapshot, "at": verified.verified_at, "ok": verified.ok},
        "last_drilled": drilled and {"snapshot": drilled.snapshot, "at": drilled.drilled_at, "ok": drilled.ok},
        "days_left": library.days_left,
        "problems": msgspec.to_builtins(library.problems),
    }
