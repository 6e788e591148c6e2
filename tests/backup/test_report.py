"""Every complete backup has its report, whatever the size of the library and the speed of the service."""

from __future__ import annotations

from pathlib import Path

import pytest
from openpyxl import load_workbook

from tests.backup.runner import BackupRunner
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Answer, Received, ScriptedServer


@pytest.mark.parametrize(("records", "seconds"), [(0, 0), (1, 0), (1_201, 1200)])
def test_there_is_a_report(tmp_path: Path, records: int, seconds: int) -> None:
    """Its page, its workbook and its table are there after the backup, and a record without a title is a line."""
    clock = ManualClock()

    def serve(request: Received) -> Answer:
        if not request.path.endswith("/publications"):
            return Answer({}, status=404)
        size, page = int(request.query["per_page"]), int(request.query["page"])
        clock.sleep(seconds)
        numbers = range((page - 1) * size + 1, min(page * size, records) + 1)
        return Answer({"records": [{"id": number} for number in numbers]}, headers={"x-total": str(records)})

    with ScriptedServer(serve) as server:
        runner = BackupRunner(tmp_path, server.url, "files = false", clock)
        assert runner.back_up().manifest.complete
        with runner.library() as library:
            report = library.report("old")
    assert (report.complete, report.figures.publications, report.to_do) == (True, records, records)
    assert Path(report.paths.html).stat().st_size
    assert Path(report.paths.issues).read_bytes().count(b"\n") == records + 1
    assert load_workbook(report.paths.workbook, read_only=True).active.max_row == records + 1
