"""Where reports are, for how long, and of what there is none."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from openpyxl import load_workbook

from cli.output import print_answer
from cli.report import report_on
from pipelines.errors import ConfigurationError
from pipelines.records.advice import code_of
from pipelines.report.build import make_report
from pipelines.report.pages import Report
from pipelines.report.tables import COLUMNS
from pipelines.settings.retention_and_notify import RetentionSettings
from pipelines.store.maintenance.retention import prune
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.store.stores import open_data
from tests.assets_defs.test_definitions import settings_for
from tests.report.library import NOW, lines_of, snapshot_of
from tests.store.conftest import bucket, objects, s3, shared_s3, stored
from tests.store.snapshot_factory import STARTED_AT, files_below, make_snapshot, rewrite

__all__ = ["bucket", "objects", "s3", "shared_s3", "stored"]  # fixtures

RECORDS = [{"id": number, "title": "A title", "published_on": "1984-06-08", "isbn": "9684192914"} for number in (1, 2)]


@pytest.mark.long
def test_it_lies_beside_the_snapshots_and_is_made_anew(stored: DataFolder) -> None:
    """In a folder and in a bucket; the snapshot stays as it was, and nothing else is left."""
    snapshot = snapshot_of(stored, RECORDS)
    before = {entry.key: entry.size for entry in stored.objects.below(snapshot.key)}
    for _again in range(2):
        report = make_report(stored, snapshot, now=NOW)
        folder = f"reports/tenant=old/snapshot={snapshot.manifest.snapshot}"
        files = ("issues.tsv", "issues.xlsx", "report.html")
        names = ["reports/tenant=old/history.json", *(f"{folder}/{name}" for name in files)]
        assert [entry.key for entry in stored.objects.below("reports")] == names
        assert report.paths.html == stored.objects.address_of(f"{folder}/report.html")
    assert {entry.key: entry.size for entry in stored.objects.below(snapshot.key)} == before
    assert [name for name in files_below(stored.path) if "report-" in name and not name.endswith(".lock")] == []


def test_page_and_workbook_have_one_count(real: Report) -> None:
    """Of each kind the workbook has as many lines as the page says, and what it has besides is counted on the page."""
    rows = list(load_workbook(real.paths.workbook).active.values)[1:]
    code = COLUMNS.index("code")
    codes = Counter(row[code] for row in rows)
    assert codes.pop("repaired") == real.repaired
    assert codes == Counter({code_of(rule): count for rule, count in real.counts.items()})
    assert {row[code] for row in rows[real.to_do :]} == {"repaired"}
    text = Path(real.paths.html).read_text("utf-8")
    assert f"{real.to_do:,} issues in all" in text
    assert f"The last {real.repaired:,} lines there are about what Bookferry repaired itself." in text
    assert f"{real.figures.same_identifier.records:,} records in {codes['shared']:,} lines of issues.xlsx" in text
    assert text.index("Publications") < text.index("What changed") < text.index("What to look at")


@pytest.mark.long
def test_prune_takes_the_reports_of_what_it_removes(data: DataFolder) -> None:
    """And no others."""
    snapshots = [snapshot_of(data, RECORDS, now=STARTED_AT + timedelta(days=day)) for day in range(3)]
    for snapshot in snapshots:
        make_report(data, snapshot, now=NOW)
    prune(data, ["old"], RetentionSettings(keep_last=1), ZoneInfo("UTC"), tenant=None, dry_run=True)
    assert len(list(data.objects.below("reports"))) == 10
    prune(data, ["old"], RetentionSettings(keep_last=1), ZoneInfo("UTC"), tenant=None, dry_run=False)
    folders = {entry.key.rpartition("/")[0] for entry in data.objects.below("reports")}
    assert folders == {"reports/tenant=old", f"reports/tenant=old/snapshot={snapshots[-1].manifest.snapshot}"}


@pytest.mark.long
def test_what_a_line_says_of_a_repaired_field(data: DataFolder) -> None:
    """An ISBN-10 and the ISBN-13 of the same book are one identifier; a field of several is one line, which says what it becomes."""
    records = [
        {"id": 1, "title": "One", "isbn": "0306406152; 9780306406157"},
        {"id": 2, "title": "Two", "isbn": "0-471-10799-9 (pbk.); 0-8044-2957-X", "doi": "https://doi.org/10.1000/182"},
        {"id": 3, "title": "Three", "isbn": "0-471-10799-2; 080442957X", "publishable_type": "Article"},
        {"id": 4, "title": "Four", "isbn": "080442957X", "publishable_type": "Book"},
    ]
    report = make_report(data, snapshot_of(data, records), now=NOW)
    repaired = {
        (line["record"], line["field"]): line
        for line in lines_of(report)
        if "Nothing has to be done" in line["suggestion"]
    }
    assert repaired["1", "ISBN"]["suggestion"] == "Nothing has to be done: it becomes the ISBN 9780306406157."
    assert repaired["2", "ISBN"]["suggestion"].endswith("becomes the ISBN 9780471107996 and the ISBN 9780804429573.")
    assert repaired["2", "DOI"]["problem"] == "It is written as a web address."
    assert ("4", "ISBN") not in repaired, "an ISBN of 10 digits is no mistake"
    wrong, *shared = lines_of(report)[: report.to_do]
    assert wrong["problem"].startswith("“0-471-10799-2”: The check digit is wrong")
    assert [line["record"] for line in shared] == ["2", "4"], (
        "the ISBN of an article names the book around it (service.md#identifiers)"
    )
    assert shared[0]["suggestion"].startswith("Compare the records 2 and 4.")


def test_dates_files_and_residue(data: DataFolder) -> None:
    """Each date is in one count; a file that could not be had is a line, one that no backup asked for is none.

    Every key without a column is counted, with an example; not of one that may name a person.
    """
    person = {"created_by": "Cora", "contributor": {"id": 1, "phone": "0123"}, "shelf/mark~": "Q 1"}
    dates = (None, "", "2021", "2021-07", "soon", "2021-07-19", "7/19/2021")
    records = [
        {"id": number, "title": f"Title {number}", "published_on": date, **person}
        for number, date in enumerate(dates, 1)
    ]
    records[6]["assets"] = [{"id": number, "name": name} for number, name in enumerate(("lost.pdf", "left.pdf"))]
    snapshot = snapshot_of(data, records)
    states = {"status": pa.array(["failed", "not_fetched"]), "problem": pa.array(["the storage answered 404", None])}

    def with_states(table: pa.Table) -> pa.Table:
        for name, values in states.items():
            table = table.set_column(table.schema.get_field_index(name), name, values)
        return table

    rewrite(snapshot, "publication_files", with_states)
    report = make_report(data, snapshot, now=NOW)
    figures = report.figures
    assert (figures.without_date, figures.year_or_month, figures.unreadable_date) == (2, 2, 1)
    [line] = [line for line in lines_of(report) if line["field"] == "file"]
    assert (line["record"], line["value"], line["problem"]) == ("7", "lost.pdf", "the storage answered 404")
    assert line["suggestion"].startswith("Open the file in the library.")
    assert figures.residue == {"publications": {"shelf/mark~": 7, "created_by": 7, "contributor.phone": 7}}
    page = Path(report.paths.html).read_text("utf-8")
    assert "Q 1" in page
    assert "Cora" not in page
    assert "0123" not in page


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the newest complete snapshot, or of the one that is named; one document with the numbers and where the files are."""
    settings = settings_for(tmp_path, "old")
    data = open_data(settings)
    complete, partial = (
        snapshot_of(data, RECORDS, now=STARTED_AT + timedelta(days=day), complete=day == 0) for day in range(2)
    )

    def report(snapshot: str | None, *, as_json: bool = True) -> str:
        print_answer(report_on(settings, tenant="old", snapshot=snapshot), as_json=as_json)
        return capsys.readouterr().out

    document = json.loads(report(None))
    assert (document["snapshot"], document["complete"], document["to_do"]) == (complete.name, True, 4)
    assert document["issues"] == {"check_digit": 2, "same_title": 2}
    assert (document["last_night"], document["last_week"]) == (None, None)
    assert document["figures"]["verdicts"]["isbn"]["invalid"] == 2
    assert all(Path(path).is_file() for path in document["paths"].values())
    assert json.loads(report(partial.name))["snapshot"] == partial.name
    output = report(partial.manifest.snapshot, as_json=False).splitlines()
    assert "is partial" in "".join(output)
    assert output[-1] == f"Report of {partial.name}: 4 issues to look at in 2 publications; 0 that Bookferry repaired."
    with pytest.raises(ConfigurationError, match="There is no snapshot 'old/20200101T000000Z'"):
        report("20200101T000000Z")


def test_a_snapshot_without_publications_has_none(data: DataFolder) -> None:
    snapshot = make_snapshot(data, ['{"id": 1, "name": "Hall"}'], resource="locations")
    with pytest.raises(ConfigurationError, match="has no publications"):
        make_report(data, snapshot, now=NOW)
