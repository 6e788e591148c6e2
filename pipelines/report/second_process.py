"""Makes the report of a large library in a second process, while the backup reads the next resources.

The process reads the finished tables of the publications, which the backup does not change any more, and stores nothing: the report gets
its place once the snapshot is published. It is optional: on any failure the backup goes on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from pipelines.errors import StorageError
from pipelines.python_process import hide_unused, python_command
from pipelines.report.build import SPILLED, collect, open_workdir, remove_workdir, store_report, workdir_of
from pipelines.report.pages import Report
from pipelines.service.redaction import outside_text
from pipelines.settings.loading import load_settings
from pipelines.store.encryption import personal_keys
from pipelines.store.findings import residue_examples, shown_residue
from pipelines.store.snapshots.captures import Capture, TableFacts
from pipelines.store.snapshots.manifest import MANIFEST, compose_manifest, decode_manifest, encode_manifest
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from pipelines.store.stores import open_data

_READ = ("raw_publications", "publications", "publication_identifiers", "publication_files")
"""The tables that a report reads. Those of other resources only have examples in it, which come at the end."""


class _Outcome(msgspec.Struct):
    """What the second process hands over: a report, or why there is none."""

    report: Report | None = None
    error: str = ""


class ReportProcess:
    """Begins the report on a capture at once; `finish` completes and stores it, `end` gives it up. Raises `OSError` if it cannot begin."""

    def __init__(self, data: DataFolder, config: Path, capture: Capture) -> None:
        self._data = data
        self._tenant = capture.facts.tenant
        self._tables = _linked_tables(data, capture)
        # A session of its own: Ctrl-C goes to the parent, which ends this process.
        self._process = subprocess.Popen(
            python_command("-m", "pipelines.report.second_process", str(config), str(self._tables)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def finish(self, snapshot: Snapshot) -> Report:
        """Wait for the report, complete it from the published snapshot, and store it. Raises `StorageError` if the process failed."""
        try:
            report = self._received()
            workdir = workdir_of(self._data, self._tenant)
            _complete(self._data, report, snapshot, workdir)
            store_report(self._data, snapshot, report, workdir)
            self._process.communicate()  # it removes its files
        finally:
            self.end()
        return report

    def end(self) -> None:
        """End the process, and remove what it left."""
        if self._process.poll() is None:
            self._process.kill()
        with suppress(OSError):
            self._process.communicate()
        if self._process.returncode:
            remove_workdir(self._data, self._tenant)
        shutil.rmtree(self._tables, ignore_errors=True)

    def _received(self) -> Report:
        assert self._process.stdout is not None  # noqa: S101  it is a pipe
        with suppress(msgspec.MsgspecError):
            outcome = _OUTCOME_DECODER.decode(self._process.stdout.read())
            if outcome.report is not None:
                return outcome.report
            raise self._failure(outcome.error)
        raise self._failure("its process ended early")

    def _failure(self, reason: str) -> StorageError:
        return StorageError(
            f"The report was not made: {reason.rstrip('.')}. To make it, run `bookferry report {self._tenant}`."
        )


def _complete(data: DataFolder, report: Report, snapshot: Snapshot, workdir: Path) -> None:
    """Complete a report on a capture with what was read after it began: other resources, problems, notes."""
    manifest, known = snapshot.manifest, report.figures.residue
    report.manifest, report.figures.residue = manifest, shown_residue(manifest)
    later = {resource: keys for resource, keys in report.figures.residue.items() if resource not in known}
    report.residue_examples |= residue_examples(data, snapshot, later, workdir / SPILLED)
    if not manifest.complete:
        report.nights = []


def _linked_tables(data: DataFolder, capture: Capture) -> Path:
    """A new folder with links to the tables, which publishing moves, and with the manifest as it would be now."""
    manifest = compose_manifest(capture.facts, datetime.now(UTC))
    prefix = f".report-{manifest.tenant}.tables-"
    for left in data.path.glob(f"{prefix}*"):  # by a killed run
        shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=data.path))
    for name in _READ:
        path = manifest.tables[name].path
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        os.link(capture.path / path, folder / path)
    (folder / MANIFEST).write_bytes(encode_manifest(manifest))
    return folder


class _LinkedSnapshot(Snapshot):
    """The tables of that folder, as the snapshot that they will be."""

    def __init__(self, data: DataFolder, folder: Path) -> None:
        super().__init__(data.objects, decode_manifest((folder / MANIFEST).read_bytes(), str(folder)))
        self._folder = folder

    def address_of(self, facts: TableFacts) -> str:
        """The address of a table."""
        return str(self._folder / facts.path)


def main(config: str, folder: str) -> None:
    """The second process: an `_Outcome` in MessagePack on stdout. Its files stay until stdin ends."""
    hide_unused()
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)  # the parent may have been killed
        try:
            settings = load_settings(Path(config))
            data = open_data(settings, personal_keys(settings))
            snapshot = _LinkedSnapshot(data, Path(folder))
            tenant = snapshot.manifest.tenant
            workdir = stack.enter_context(open_workdir(data, tenant))
            url = settings.tenant(tenant).record_url
            outcome = _Outcome(collect(data, snapshot, workdir, now=datetime.now(UTC), record_url=url))
        except Exception as error:  # noqa: BLE001  the parent says so
            outcome = _Outcome(error=f"{type(error).__name__}: {outside_text(error, 2000)}")
        # The parent reads to the end; `sys.stdout` would stay open
        with suppress(BrokenPipeError), os.fdopen(sys.stdout.fileno(), "wb") as handed_over:
            handed_over.write(msgspec.msgpack.encode(outcome))
        sys.stdin.buffer.read()


_OUTCOME_DECODER = msgspec.msgpack.Decoder(_Outcome)


if __name__ == "__main__":
    main(*sys.argv[1:])
