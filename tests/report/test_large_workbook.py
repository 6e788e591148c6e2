"""A workbook whose rows a second process writes is the one that this process would write, and leaves nothing behind where it fails."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.errors import StorageError
from pipelines.python_process import python_command
from pipelines.report import large_workbook
from pipelines.report.large_workbook import LargeWorkbook, open_large_workbook
from pipelines.report.workbook import Cell, Column, open_workbook

COLUMNS = [Column("record", 9), Column("title", 44), Column("link", 30, is_link=True)]

VALUES = st.tuples(
    st.none() | st.integers(-(2**63), 2**64 - 1),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.floats() | st.booleans(),
)

KILLED = """
import os, signal, sys
from pathlib import Path
from pipelines.report.large_workbook import BATCH, open_large_workbook
from pipelines.report.workbook import Column
with open_large_workbook(Path(sys.argv[1]), "Rows", [Column("a", 9)]) as book:
    for number in range(BATCH + 1):
        book.write([number])
    print(book._process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_workbook, "BATCH", 3)


def write(book: LargeWorkbook, rows: int) -> None:
    for number in range(rows):
        book.write((number, f"Title {number}", f"https://library.example.org/{number}"))


def process_of(book: LargeWorkbook) -> int:
    assert book._process is not None
    return book._process.pid


@pytest.mark.usefixtures("small_batches")
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(VALUES) | st.sampled_from([[(1, "a", 0.5)] * number for number in (0, 2, 3, 4, 6)]))
def test_it_is_the_workbook_of_one_process(tmp_path: Path, rows: list[tuple[Cell, Cell, Cell]]) -> None:
    """Byte for byte, with fewer rows than make a second process begin, with more, and where the last batch is full."""
    one, two = tmp_path / "one.xlsx", tmp_path / "two.xlsx"
    with open_workbook(one, "Rows", COLUMNS) as book, open_large_workbook(two, "Rows", COLUMNS) as large:
        for values in rows:
            book.write(values)
            large.write(values)
    assert one.read_bytes() == two.read_bytes()
    assert large.rows == len(rows)


@pytest.mark.usefixtures("small_batches")
def test_a_disk_that_takes_no_more_is_a_storage_error(tmp_path: Path) -> None:
    """The second process says what is the matter."""
    target = tmp_path / "a.xlsx"
    target.mkdir()
    refused = r"^Cannot write to or read from .*a\.xlsx: "
    with pytest.raises(StorageError, match=refused), open_large_workbook(target, "Rows", COLUMNS) as book:
        write(book, 4)
    assert [one.name for one in tmp_path.iterdir()] == ["a.xlsx"]


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("more", [1, 100_000], ids=["at_its_end", "among_the_rows"])
def test_a_killed_process_is_a_storage_error(tmp_path: Path, more: int) -> None:
    """With what to do, whether rows or only their end are still to come."""

    def killed_meanwhile(book: LargeWorkbook) -> None:
        write(book, 3)
        os.kill(process_of(book), signal.SIGKILL)
        write(book, more)

    ended = r"a\.xlsx was not written: its process ended early\. Run the command again\.$"
    with pytest.raises(StorageError, match=ended), open_large_workbook(tmp_path / "a.xlsx", "Rows", COLUMNS) as book:
        killed_meanwhile(book)
    assert not (tmp_path / "a.xlsx").exists()


@pytest.mark.usefixtures("small_batches")
def test_an_error_leaves_no_process_and_no_rows(tmp_path: Path) -> None:
    def given_up(book: LargeWorkbook) -> None:
        write(book, 4)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), open_large_workbook(tmp_path / "a.xlsx", "Rows", COLUMNS) as book:
        given_up(book)
    with pytest.raises(ProcessLookupError):
        os.kill(process_of(book), 0)
    assert not list(tmp_path.iterdir())


def test_the_second_process_ends_with_the_first_one(tmp_path: Path) -> None:
    """I3. A killed run leaves no process that works on, and no half of a file."""
    command = python_command("-c", KILLED, str(tmp_path / "a.xlsx"))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        second = int(first.stdout.readline())
        assert first.wait() == -signal.SIGKILL
    with suppress(ProcessLookupError):  # it has ended already
        ended, _, _ = select.select([os.pidfd_open(second)], [], [], 60)
        assert ended
    assert not list(tmp_path.iterdir())
