"""`bookferry backup`: its output, its requests, and the state after every failure (I4, I5, I10)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cli.command import PASSWORD, PATIENCE, Installation, environment, run
from tests.cli.conftest import SMALL, BackedUp
from tests.sandbox.process import SandboxProcess

OUR_PROGRESS = ("starting", "publications: ", "files: ", "! NEW: the service announces")

CONTRACT = {"tenant", "snapshot", "complete", "counts", "files", "requests", "seconds", "path"}


@pytest.mark.long
def test_json_is_one_document_with_the_keys_of_the_contract(library: BackedUp) -> None:
    """Neither Dagster's log nor a warning of any library reaches the terminal, nothing but the document and our progress."""
    assert library.first.out.endswith("}\n")
    assert [line for line in library.first.err.splitlines() if not line.startswith(OUR_PROGRESS)] == []
    document = library.first.document
    assert library.first.status == 0
    assert set(document) >= CONTRACT
    assert document["tenant"] == "library"
    assert document["complete"] is True
    assert document["counts"] == {"publications": library.sandbox.publications()}
    assert {"count", "bytes", "new", "kept", "failed"} <= set(document["files"])
    assert document["files"]["count"] > 0
    assert document["seconds"] > 0
    assert datetime.strptime(document["snapshot"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC) <= datetime.now(UTC)
    assert (Path(document["path"]) / "manifest.json").is_file()
    assert document["requests"] == -(-library.sandbox.publications() // 50), "fifty records each"


@pytest.mark.long
def test_a_total_that_disagrees_is_partial(small: BackedUp) -> None:
    """Exit 3: the snapshot is stored, the last line calls it partial, and the newest complete snapshot stays current (I4)."""
    before = small.snapshots()
    complete = small.answer("snapshots", "show", "small")["snapshot"]
    small.sandbox.change("small", variations={"x_total_error": 1})
    printed = small.printed("backup", "small", status=3)
    assert printed[-1].startswith(f"PARTIAL: {SMALL} publications; ")
    assert "not proved complete" in printed[-1]
    assert f"{SMALL + 1} records" in printed[0]
    *_, newest = small.answer("snapshots", "list")["snapshots"]
    assert (newest["complete"], newest["counts"]) == (False, {"publications": SMALL})
    assert before.items() <= small.snapshots().items()
    assert small.answer("snapshots", "show", "small")["snapshot"] == complete
    rows = small.answer("query", "SELECT DISTINCT snapshot FROM publications")["rows"]
    assert rows == [{"snapshot": complete}]
    [library] = small.answer("status", status=3)["libraries"]
    [problem] = library["problems"]
    assert (problem["code"], newest["snapshot"] in problem["message"]) == ("backup", True)
    assert library["backup"]["snapshot"] == complete


def _wrong_password(installation: Installation) -> dict[str, object]:
    return {"variables": {**installation.sign_in, "TEST_PASSWORD": PASSWORD}}


def _down_in_the_middle(installation: Installation) -> dict[str, object]:
    """A service that asks for more than an hour ends the tries at once, as a minute of failures would."""
    installation.sandbox.fault("jump", "small", seconds=0)  # the first page is read as usual
    installation.sandbox.fault("status", "small", status=503, retry_after=7200, times=99)
    return {}


def _foreign(installation: Installation) -> dict[str, object]:
    installation.sandbox.change("small", variations={"link": "foreign"})
    return {}


@pytest.mark.long
@pytest.mark.parametrize(
    ("trouble", "status", "messages"),
    [
        (_wrong_password, 4, ["401", "Check user name and password"]),
        (_foreign, 1, ["elsewhere.example"]),
        (
            _down_in_the_middle,
            1,
            ["page=3", "503", "Run the same command again after"],
        ),
    ],
    ids=lambda value: value.__name__.strip("_") if callable(value) else None,
)
def test_trouble_ends_with_its_status_and_one_message(
    small: BackedUp, trouble: Callable[[Installation], dict[str, object]], status: int, messages: list[str]
) -> None:
    """Whatever goes wrong: the right status, one message that helps, no secret, and the last good snapshot byte for byte (I5, I10)."""
    before = small.snapshots()
    outcome = small.backup("--json", **trouble(small))
    outcome.assert_failed(status, *messages)
    assert outcome.document["exit_status"] == status
    assert PASSWORD not in outcome.err + outcome.out
    assert small.sandbox.password not in outcome.err + outcome.out
    assert small.snapshots() == before


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 60 MB; only the superuser can have one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=60m", "tmpfs", folder], capture_output=True, check=False
    ).returncode:
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.long
def test_a_full_disk_is_reported_as_such(tiny_disk: Path, sandbox: SandboxProcess) -> None:
    """Wherever the space ends, in the budget's file or in Dagster's history: exit 1, one message, and what was published stays (I5)."""
    installation = Installation.make(tiny_disk, sandbox, "library")
    assert installation.backup("--json").status == 0
    before = installation.snapshots()
    for free_bytes in (1_000_000, 0):
        filler = tiny_disk / "filler"
        filler.unlink(missing_ok=True)
        filler.write_bytes(bytes(shutil.disk_usage(tiny_disk).free - free_bytes))
        installation.backup("--json").assert_failed(1, str(tiny_disk / "library-data"), "disk is full")
        assert installation.snapshots() == before


REPORT_FAILS = """
import pipelines.backup.flow
def mistake(*_arguments, **_options):
    raise KeyError("a mistake")
pipelines.backup.flow.make_report = mistake
from cli.main import main
main()
"""


@pytest.mark.long
def test_a_mistake_of_ours_in_the_report_says_that_it_is_one(sandbox: SandboxProcess, tmp_path: Path) -> None:
    """The backup is what it is; the lines to report are on stderr, and the last line says what is not there."""
    installation = Installation.make(tmp_path, sandbox, "small")
    process = subprocess.run(
        [sys.executable, "-c", REPORT_FAILS, "backup", "small"],
        cwd=installation.folder,
        env=environment(**installation.sign_in),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert (
        "! The report could not be made: KeyError: 'a mistake'. This is a mistake in Bookferry: please report"
        in process.stderr
    )
    assert "Traceback" in process.stderr
    assert "; without a report; " in process.stdout.splitlines()[-1]


@pytest.mark.long
def test_the_configuration_is_found_where_it_was_named(small: BackedUp, tmp_path: Path) -> None:
    """--config, then $BOOKFERRY_CONFIG, then the working folder; paths in the file are relative to it."""
    config = str(small.folder / "bookferry.toml")
    [*_, newest] = small.run("snapshots", "list", "--json").document["snapshots"]
    for options, variables in (("--config", config), {}), ((), {"BOOKFERRY_CONFIG": config}):
        listed = run("snapshots", "list", "--json", *options, folder=tmp_path, variables=variables)
        assert listed.document["snapshots"][-1]["path"] == newest["path"]
    run("snapshots", "list", "--json", folder=tmp_path).assert_failed(2, "no such configuration file", "bookferry init")
    missing = {"BOOKFERRY_CONFIG": "nowhere.toml"}
    run("tables", "--json", folder=tmp_path, variables=missing).assert_failed(2, "$BOOKFERRY_CONFIG", "nowhere.toml")
