"""Rows of two plans: a usual one, and one of hostile records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipelines.migration.model.actions import Action, FileAction
from pipelines.migration.model.plan import FileCounts, Plan, PlannedFile, PlanRow
from tests.migration.sample_plans import plan_of, row
from tests.report.library import HOSTILE

NOW = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)


def usual_rows() -> list[PlanRow]:
    """At least one row of each kind."""
    upload = PlannedFile(kind="asset", position=0, action=FileAction.UPLOAD, name="Contents", size=1_200_000)
    lost = PlannedFile(
        kind="cover", position=0, action=FileAction.MISSING, filename="cover.jpg", problem="404 Not Found"
    )
    return [
        row(1, Action.CREATE, payload={"title": "Title 1"}, files=[upload, lost], unsent={"import_state": "done"}),
        row(
            2, Action.CREATE, payload={"title": "Title 2"}, unsent={"isbn": "9780306406158", "authors[3].orcid": "0000"}
        ),
        row(
            3,
            Action.PATCH,
            target_id=30,
            matched_by="identifier",
            payload={"title": "The history of printing", "abstract": "New"},
            before={"title": "A history of printing", "abstract": None},
        ),
        row(
            4, Action.PATCH, target_id=40, matched_by="journal", payload={"abstract": "More"}, before={"abstract": None}
        ),
        row(5, Action.UNCHANGED, target_id=50, matched_by="content"),
        row(6, Action.CONFLICT, reason="several_targets", candidates=[60, 61]),
        row(
            7,
            Action.CONFLICT,
            target_id=70,
            matched_by="fingerprint",
            reason="fields_differ",
            differing={"identifiers": ['[["doi","10.1000/182"]]', '[["doi","10.1000/183"]]']},
        ),
        row(8, Action.SKIPPED, matched_by="decision"),
        row(9, Action.QUARANTINED, title=None, reason="nothing_to_send", unsent={"title": 7}),
        row(1, Action.CREATE, resource="users", title="Cora Contributor", payload={"email": "cora@example.org"}),
        row(2, Action.CONFLICT, resource="users", title="Lars Librarian", reason="several_targets", candidates=[3, 4]),
    ]


def hostile_rows() -> list[PlanRow]:
    """Every hostile text in every displayed field."""
    rows = []
    for number, text in enumerate(HOSTILE, start=1):
        lost = PlannedFile(kind="asset", position=0, action=FileAction.MISSING, name=text, filename=text, problem=text)
        differing = {"title": [f'"{number}"', None], text: [text, text[::-1]]}
        values: dict[str, Any] = {"title": text, "files": [lost], "unsent": {text: text, "doi": text, "owner": "Cora"}}
        rows += [
            row(number, Action.CREATE, payload={"title": text}, **values),
            row(number + 100, Action.PATCH, payload={text: text}, before={text: [text]}, matched_by="id", **values),
            row(number + 200, Action.CONFLICT, reason="fields_differ", differing=differing, target_id=number, **values),
            row(number + 300, Action.QUARANTINED, reason="nothing_to_send", **values),
        ]
    return rows


def example(folder: Path, rows: Sequence[PlanRow], **values: Any) -> Plan:
    """A plan with these rows and the facts that follow from them."""
    counts: dict[str, dict[str, int]] = {}
    for planned in rows:
        actions = counts.setdefault(planned.resource, {})
        actions[planned.action] = actions.get(planned.action, 0) + 1
    files = FileCounts()
    for file in (file for planned in rows for file in planned.files):
        files.upload += file.action == "upload"
        files.bytes += (file.size or 0) if file.action == "upload" else 0
        files.missing += file.action == FileAction.MISSING
    return plan_of(
        folder,
        rows,
        **{
            "counts": counts,
            "resources": list(counts),
            "matched_by": Counter(planned.matched_by for planned in rows if planned.matched_by),
            "files": files,
            "requests": 6021,
            **values,
        },
    )
