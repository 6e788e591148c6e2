"""`bookferry demo`: backs up, queries and migrates a whole real library, and leaves no process behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

import pytest

from tests.cli.command import BOOKFERRY, PATIENCE, Outcome, environment, run
from tests.cli.modes import modes, open_to_others

pytestmark = [pytest.mark.long, pytest.mark.timeout(1000)]

RECORDS = 5445


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the demonstration."""
    return tmp_path_factory.mktemp("demo")


TOKENS = "sign-ins"


@pytest.fixture(scope="module")
def first(folder: Path) -> Outcome:
    """The output of the first demonstration, in a process that closes nothing by its umask."""
    return run(
        "demo",
        folder=folder,
        variables={"XDG_STATE_HOME": str(folder / TOKENS)},
        before=partial(os.umask, 0),
        seconds=900,
    )


def test_it_backs_up_a_real_library_and_runs_queries(first: Outcome) -> None:
    assert first.status == 0
    assert f"{RECORDS:,} real publications" in first.err
    assert "real service grants about 60" in first.err
    assert [line for line in first.lines if line.startswith(f"Complete: {RECORDS:,} publications; 109 requests, ")]
    for question in ("by decade of publication", "lack what readers look for", "describe the same publication"):
        assert question in first.out
    assert "Traceback" not in first.err
    with pytest.raises(urllib.error.URLError):  # the sandbox is gone
        urllib.request.urlopen(address_in(first.err), timeout=5)


def address_in(text: str) -> str:
    """Where the sandbox is."""
    [address, *_] = re.findall(r"http://127\.0\.0\.1:[0-9]+", text)
    return str(address)


def test_it_migrates_the_library_and_verifies_it(first: Outcome) -> None:
    """Each command is printed before what it says. The next steps are the last lines; none of them needs the libraries, which are gone."""
    lost = "not moved: 69 identifiers, the values of 1 field."
    created = f"{RECORDS:,} created, 409 files uploaded; 6,160 requests; {lost}"
    assert f"Complete as planned: {created}" in first.out
    typed = [line.split(" ", 2)[2].split() for line in first.lines if line.startswith("$ ")]
    assert [words[: 1 + (words[0] == "migrate")] for words in typed] == [
        *(["backup"], ["query"], ["query"], ["query"]),
        *(["migrate", command] for command in ("plan", "apply", "verify", "plan")),
    ]
    assert "is empty: it has nothing to write into 'new'." in first.out
    proof = next(line for line in first.lines if line.startswith("Equal"))
    assert proof.startswith(f"Equal as planned: {RECORDS:,} records compared, 409 files checked")
    assert proof.endswith(lost)
    assert "Will not arrive in 'new':\n! 69 identifiers: " in first.out
    assert "409 files stored (15.8 MB), 409 of them new; equal files share a copy: 26 copies, 908.9 kB" in first.out
    assert "409 files will be uploaded (15.8 MB" in first.out
    assert first.lines[-1] == "  bookferry init"


def test_nothing_of_it_is_open_to_others(first: Outcome, folder: Path) -> None:
    """Snapshots, blobs, state, catalogue, plans, journal, reports, sign-ins, Dagster's home; SQLite, DuckDB and child processes."""
    data = folder / "bookferry-demo" / "library-data"
    assert {"state.db", "library.duckdb", "plans", "reports", "files", "dagster/history/runs.db"} <= modes(data).keys()
    assert open_to_others(folder / "bookferry-demo") == {}
    assert len(modes(folder / TOKENS)) > 1
    assert open_to_others(folder / TOKENS) == {}


def test_its_folder_can_be_explored_as_it_says(first: Outcome, folder: Path) -> None:
    """Every command of "Next steps" works as printed."""
    steps = [line.strip() for line in first.lines if line.startswith("  bookferry ")]
    assert [step.split()[1] for step in steps] == ["tables", "query", "query", "snapshots", "init"]
    for step in steps[:4]:
        subprocess.run(
            f'bookferry() {{ {" ".join(BOOKFERRY)} "$@"; }}; {step}',
            shell=True,
            cwd=folder,
            env=environment(),
            check=True,
            capture_output=True,
        )


def test_a_configuration_of_a_person_is_not_touched(tmp_path: Path) -> None:
    config = tmp_path / "bookferry.toml"
    config.write_bytes(b"# mine \xff")
    run("demo", "--folder", ".", "--json", folder=tmp_path).assert_failed(
        2, "was not written by `bookferry demo`", "--folder"
    )
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("bookferry.toml", b"# mine \xff")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_its_sandbox_ends_with_it(number: signal.Signals, tmp_path: Path) -> None:
    """Also when the command is stopped or killed."""
    demo = subprocess.Popen(
        [*BOOKFERRY, "demo", "--json"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert demo.stderr is not None
    address = address_in(demo.stderr.readline())
    os.kill(demo.pid, number)
    out, err = demo.communicate(timeout=PATIENCE)
    if number == signal.SIGTERM:
        assert demo.returncode == 143
        assert json.loads(out)["error"].startswith("Stopped before the end.")
        assert "Traceback" not in err
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(address, timeout=5)
        except urllib.error.HTTPError:
            time.sleep(0.1)
        except OSError:
            return
    pytest.fail("the sandbox still answers")
