"""A workbook in LibreOffice, which nobody here wrote: what it reads is what was written. Skipped where it is not installed."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path

import pytest

from pipelines.report.workbook import Column, open_workbook

OFFICE = shutil.which("soffice")

pytestmark = [pytest.mark.long, pytest.mark.skipif(OFFICE is None, reason="LibreOffice is not installed")]

AS_CSV = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false"
"""Comma, quotation mark, UTF-8, from the first line; cells as they are displayed."""


def test_text_stays_text(tmp_path: Path) -> None:
    """Zeros, long numbers, formulas and apostrophes are displayed as they were in the record."""
    rows = [
        ("0306406152", 1),
        ("9780306406157", 2),
        ("=1+1", 3),
        ("'quoted", 4),
        ("-5", 5),
        ("1984-06", 6),
        ("a\nb", 7),
    ]
    with open_workbook(tmp_path / "rows.xlsx", "Rows", [Column("text", 20), Column("number", 8)]) as book:
        for row in rows:
            book.write(row)
    profile = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
    command = [str(OFFICE), profile, "--headless", "--convert-to", AS_CSV, "--outdir", tmp_path, tmp_path / "rows.xlsx"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["text", "number"], *([text, str(number)] for text, number in rows)]
