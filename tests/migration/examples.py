"""Two plans made by hand: one as it is met, and one of records that mean harm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipelines.migration.model.plan import (
    CONFLICT,
    CREATE,
    MISSING,
    PATCH,
    QUARANTINED,
    SKIPPED,
    UNCHANGED,
    FileCounts,
    Plan,
    PlannedFile,
    PlanRow,
)
from tests.migration.by_hand import plan_of, row
from tests.report.library import HOSTILE

NOW = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)


def usual_rows() -> list[PlanRow]:
    """One of everything."""
    upload = PlannedFile(kind="asset", position=0, action="upload", name="Contents", size=1_200_000)
    lost = PlannedFile(kind="cover", position=0, action=MISSING, filename="cover.jpg", problem="404 Not Found")
    return [
        row(1, CREATE, payload={"title": "Title 1"}, files=[upload, lost], unsent={"import_state": "done"}),
        row(2, CREATE, payload={"title": "Title 2"}, unsent={"isbn": "9780306406158", "authors[3].orcid": "0000"}),
        row(
            3,
            PATCH,
            target_id=30,
            matched_by="identifier",
            payload={"title": "The history of printing", "abstract": "New"},
            before={"title": "A history of printing", "abstract": None},
        ),
        row(4, PATCH, target_id=40, matched_by="journal", payload={"abstract": "More"}, before={"abstract": None}),
        row(5, UNCHANGED, target_id=50, matched_by="content"),
        row(6, CONFLICT, reason="several_targets", candidates=[60, 61]),
        row(
            7,
            CONFLICT,
            target_id=70,
            matched_by="fingerprint",
            reason="fields_differ",
            differing={"identifiers": ['[["doi","10.1000/182"]]', '[["doi","10.1000/183"]]']},
        ),
        row(8, SKIPPED, matched_by="decision"),
        row(9, QUARANTINED, title=None, reason="nothing_to_send", unsent={"title": 7}),
        row(1, CREATE, resource="users", title="Cora Contributor", payload={"email": "cora@example.org"}),
        row(2, CONFLICT, resource="users", title="Lars Librarian", reason="several_targets", candidates=[3, 4]),
    ]


def hostile_rows() -> list[PlanRow]:
    """Every hostile text wherever a record's text is shown."""
    rows = []
    for number, text in enumerate(HOSTILE, start=1):
        lost = PlannedFile(kind="asset", position=0, action=MISSING, name=text, filename=text, problem=text)
        differing = {"title": [f'"{number}"', None], text: [text, text[::-1]]}
        found: dict[str, Any] = {"title": text, "files": [lost], "unsent": {text: text, "doi": text, "owner": "Cora"}}
        rows += [
            row(number, CREATE, payload={"title": text}, **found),
            row(number + 100, PATCH, payload={text: text}, before={text: [text]}, matched_by="id", **found),
            row(number + 200, CONFLICT, reason="fields_differ", differing=differing, target_id=number, **found),
            row(number + 300, QUARANTINED, reason="nothing_to_send", **found),
        ]
    return rows


def example(folder: Path, rows: Sequence[PlanRow], **told: Any) -> Plan:
    """A plan of some rows, with the facts that follow from them."""
    counts: dict[str, dict[str, int]] = {}
    for one in rows:
        actions = counts.setdefault(one.resource, {})
        actions[one.action] = actions.get(one.action, 0) + 1
    files = FileCounts()
    for file in (file for one in rows for file in one.files):
        files.upload += file.action == "upload"
        files.bytes += (file.size or 0) if file.action == "upload" else 0
        files.missing += file.action == MISSING
    return plan_of(
        folder,
        rows,
        **{
            "counts": counts,
            "resources": list(counts),
            "matched_by": Counter(one.matched_by for one in rows if one.matched_by),
            "fields": Counter(name for one in rows if one.action == PATCH for name in one.payload),
            "unsent": Counter(path for one in rows for path in one.unsent),
            "files": files,
            "requests": 6021,
            **told,
        },
    )
