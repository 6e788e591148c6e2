"""A workbook with any number of rows: a second process writes them, while this one makes the next, so that two cores share the work.

A few rows are written in this process, sooner than another one begins.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import msgspec

from pipelines.errors import StorageError
from pipelines.python_process import python_command
from pipelines.report.workbook import Cell, Column, open_workbook
from pipelines.store.durable import storage_errors

BATCH = 2000
"""Rows in memory at a time: about a megabyte. With so many, a second process begins."""

_LENGTH_BYTES = 4
"""Before each message to the second process stands its length. An empty one ends the rows; without it, the first process was killed."""


class LargeWorkbook:
    """Writes the rows of one table. Made by `open_large_workbook`."""

    def __init__(self, path: Path, name: str, columns: Sequence[Column]) -> None:
        self.rows = 0
        self._path = path
        self._name = name
        self._columns = columns
        self._batch: list[Sequence[Cell]] = []
        self._process: subprocess.Popen[bytes] | None = None

    def write(self, row: Sequence[Cell]) -> None:
        """Append one row, as `WorkbookWriter` does. Raises `StorageError` where the second process has failed."""
        self.rows += 1
        self._batch.append(row)
        if len(self._batch) == BATCH:
            self._send_batch()

    def end(self) -> None:
        """Finish the file."""
        if self._process is None:
            with open_workbook(self._path, self._name, self._columns) as book:
                for row in self._batch:
                    book.write(row)
        else:
            if self._batch:
                self._send_batch()
            self._send(self._process, b"")
            said, _ = self._process.communicate()
            if self._process.returncode:
                raise self._failure(said)

    def close(self) -> None:
        """End the second process. It removes its rows, unless the file is finished."""
        if self._process is not None:
            with suppress(OSError):
                self._process.communicate()

    def _send_batch(self) -> None:
        if self._process is None:
            # A session of its own: Ctrl-C goes to the parent, which ends this process.
            self._process = subprocess.Popen(
                python_command("-m", __name__, str(self._path)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._send(self._process, msgspec.msgpack.encode((self._name, self._columns)))
        self._send(self._process, msgspec.msgpack.encode(self._batch))
        self._batch = []

    def _send(self, process: subprocess.Popen[bytes], message: bytes) -> None:
        assert process.stdin is not None  # noqa: S101  it is a pipe
        try:
            process.stdin.write(len(message).to_bytes(_LENGTH_BYTES, "big") + message)
            process.stdin.flush()
        except BrokenPipeError as error:
            raise self._failure(process.stdout.read() if process.stdout else b"") from error

    def _failure(self, said: bytes) -> StorageError:
        return StorageError(
            said.decode() or f"{self._path} was not written: its process ended early. Run the command again."
        )


@contextmanager
def open_large_workbook(path: Path, name: str, columns: Sequence[Column]) -> Iterator[LargeWorkbook]:
    """A workbook with one table, as `open_workbook` makes it: the same bytes, and the same errors."""
    with storage_errors(path):
        workbook = LargeWorkbook(path, name, columns)
        try:
            yield workbook
            workbook.end()
        finally:
            workbook.close()


def main(path: str) -> None:
    """The second process: reads columns and rows from stdin. Says on stdout what went wrong."""
    messages = _messages(sys.stdin.buffer)
    try:
        name, columns = _ROWS_DECODER.decode(next(messages))
        with open_workbook(Path(path), name, columns) as book:
            for message in messages:
                for row in msgspec.msgpack.decode(message):
                    book.write(row)
    except StorageError as error:
        sys.stdout.write(str(error))
        sys.exit(1)
    except EOFError:  # the first process was killed, or gave up
        sys.exit(1)


def _messages(file: IO[bytes]) -> Iterator[bytes]:
    """Yields messages up to the empty one. Raises `EOFError` where they end before."""
    while True:
        begin = file.read(_LENGTH_BYTES)
        message = file.read(length := int.from_bytes(begin, "big"))
        if len(begin) < _LENGTH_BYTES or len(message) < length:
            raise EOFError
        if not message:
            return
        yield message


_ROWS_DECODER = msgspec.msgpack.Decoder(tuple[str, list[Column]])


if __name__ == "__main__":
    main(*sys.argv[1:])
