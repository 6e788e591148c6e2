"""Packages with our names that are not ours: nothing that we start imports them from the working folder, and `bookferry` refuses them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import bookferry
from tests.cli.command import PATIENCE, Installation, environment
from tests.cli.conftest import LARGE, SMALL, BackedUp
from tests.cli.modes import open_to_others
from tests.cli.web_interface import WebInterface
from tests.sandbox.process import SandboxProcess

SCRIPT = Path(sys.executable).with_name("bookferry")
"""The console script: unlike `python -m`, it does not put the working folder on the path of its own process."""

MODULES = ("__init__", "definitions", "__main__", "main", "app")
ALSO = ("dagster", "multiprocessing", "random", "duckdb", "httpx", "webbrowser", "bookferry")
"""Names of other people's packages that our processes import."""

CODE = "import os, pathlib\npathlib.Path({marker!r}).mkdir(exist_ok=True)\npathlib.Path({marker!r}, __name__ + str(os.getpid())).touch()\n"


class Stranger(Installation):
    """An installation in the folder of somebody who has packages with our names. Whichever is imported leaves a mark."""

    @property
    def marks(self) -> list[str]:
        """The modules of this folder that were imported."""
        folder = self.folder / "marks"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def start(self, *arguments: str, hurried: bool = False, **options: object) -> subprocess.Popen[str]:
        """Start the console script here, without PYTHONPATH."""
        assert not hurried
        variables = {name: value for name, value in environment(**self.sign_in).items() if name != "PYTHONPATH"}
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": variables, **options}
        return subprocess.Popen([SCRIPT, *arguments], cwd=self.folder, text=True, **settings)  # type: ignore[call-overload,no-any-return]

    def finished(self, *arguments: str, **options: object) -> tuple[int, str, str]:
        """Status and output of a command."""
        with self.start(*arguments, **options) as process:
            out, err = process.communicate(timeout=PATIENCE)
            return process.returncode, out, err


@pytest.fixture
def stranger(tmp_path: Path, sandbox: SandboxProcess) -> Stranger:
    installation = Stranger(tmp_path, sandbox, "small")
    installation.configure(base_url=sandbox.base_url("small"))
    code = CODE.format(marker=str(tmp_path / "marks"))
    for name in (*bookferry.PACKAGES, *ALSO):
        (tmp_path / name).mkdir()
        for module in MODULES:
            (tmp_path / name / f"{module}.py").write_text(code)
    return installation


@pytest.mark.long
def test_commands_in_a_strangers_folder(stranger: Stranger) -> None:
    status, out, err = stranger.finished("backup", "small", "--json")
    assert status == 0, err
    assert json.loads(out)["counts"] == {"publications": SMALL}
    with stranger.start("sandbox", "--json", "--port", "0") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["url"]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    assert stranger.marks == []


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_web_interface_in_a_strangers_folder(stranger: Stranger) -> None:
    """Also the process of a run that it launches. Nobody else can open what Dagster's own processes write, whatever the umask."""
    with WebInterface(stranger, umask=0) as interface:
        run = interface.launch("nightly_backup")
        assert interface.wait_for(run) == "SUCCESS"
        assert open_to_others(stranger.folder / "library-data") == {}
        interface.stop()
    assert stranger.marks == []
    assert len(list((stranger.folder / "library-data" / "snapshots" / "tenant=small").iterdir())) == 1


@pytest.mark.parametrize(("form", "name"), [("{}.py", "pipelines"), ("{}/__init__.py", "cli")])
def test_a_package_that_hides_ours_is_refused(tmp_path: Path, name: str, form: str) -> None:
    """One line, before any of its code runs. A PYTHONPATH that ends with a colon names the working folder, too."""
    hiding = tmp_path / form.format(name)
    hiding.parent.mkdir(exist_ok=True)
    hiding.write_text(CODE.format(marker=str(tmp_path / "marks")))
    for path in (str(tmp_path), f"{os.devnull}:"):
        command = [SCRIPT, "--json", "tables"]
        variables = environment() | {"PYTHONPATH": path}
        process = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
        assert process.returncode == 2
        assert process.stderr.count("\n") == 1
        assert f"error: Python finds `{name}` in {hiding}" in process.stderr
        assert json.loads(process.stdout)["exit_status"] == 2
    assert not (tmp_path / "marks").exists()


READING = """
import sys
{first}
tables = library(sys.argv[1])
import pipelines, pipelines.mine
answers = tables.example("collection_by_decade").fetchall()
(count,) = library(sys.argv[1]).sql("SELECT count(*) FROM publications").fetchall()
print(pipelines.mine.ANSWER, len(answers) > 5, count, pipelines.__file__)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "first",
    ["from bookferry import library", "import pipelines.mine, sql\nfrom bookferry import library"],
    ids=["ours first", "theirs first"],
)
def test_an_analysts_own_packages_do_no_harm(first: str, library: BackedUp, tmp_path: Path) -> None:
    """Both are there: Bookferry's tables, and the analyst's `pipelines` and `sql`, whichever is imported first."""
    for name in ("pipelines", "sql"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "pipelines" / "mine.py").write_text("ANSWER = 42\n")
    script = tmp_path / "analysis.py"
    script.write_text(READING.format(first=first))
    variables = {name: value for name, value in environment().items() if name != "PYTHONPATH"}
    process = subprocess.run(
        [sys.executable, script, library.folder / "bookferry.toml"],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.stdout == f"42 True ({LARGE},) {tmp_path / 'pipelines' / '__init__.py'}\n", process.stderr
