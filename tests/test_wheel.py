"""The wheel as a stranger installs it: what it holds and says of itself, and that it runs elsewhere, without the web interface, too."""

from __future__ import annotations

import ast
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import bookferry
from tests.cli.command import ROOT, environment
from tests.test_project import PACKAGES, PYPROJECT, tracked

pytestmark = pytest.mark.long

VERSION = PYPROJECT["project"]["version"]
ONLY_FOR_UI = ("dagster_webserver", "dagster_graphql", "uvicorn", "starlette")
"""What the extra `ui` alone installs."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.mark.long
def test_it_holds_every_file_of_its_packages_and_the_licences(wheel: Path) -> None:
    """SQL, the real library, pages and licences come along; tests and benchmarks do not."""
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {str(path.relative_to(ROOT)) for path in tracked(*PACKAGES)}
    assert expected - names == set()
    assert {"sql/examples/identifiers_by_kind.sql", "sandbox/library/publications.jsonl.gz"} <= names
    licences = {name.partition("/licenses/")[2] for name in names if "/licenses/" in name}
    assert licences == set(PYPROJECT["project"]["license-files"])
    top = {name.partition("/")[0] for name in names if ".dist-info" not in name}
    assert top == set(PACKAGES)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bookferry` of an empty environment with the wheel in it; this one lends other people's packages, but no web interface."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, symlinks=True, with_pip=False)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True)
    (site,) = (folder / "lib").glob("python*/site-packages")
    lent = folder / "lent"
    lent.mkdir()
    for place in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for path in Path(place).iterdir():
            if not path.name.startswith(ONLY_FOR_UI):
                (lent / path.name).symlink_to(path)
    (site / "lent.pth").write_text(f"{lent}\n", encoding="utf-8")
    return folder / "bin" / "bookferry"


def _run(command: Path, *arguments: str, folder: Path, status: int = 0) -> tuple[str, str]:
    variables = {name: value for name, value in environment().items() if name != "PYTHONPATH"}
    process = subprocess.run(
        [command, *arguments], cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    assert process.returncode == status, process.stderr
    return process.stdout, process.stderr


def test_it_runs_elsewhere_and_without_the_web_interface(installed: Path, tmp_path: Path) -> None:
    """From a folder outside the checkout, with nothing of the checkout on its path."""
    script = "import cli, sandbox; print(cli.__file__, sandbox.__file__)"
    out, _ = _run(installed.with_name("python"), "-c", script, folder=tmp_path)
    assert all(path.startswith(str(installed.parents[1])) for path in out.split())
    assert _run(installed, "--version", folder=tmp_path) == (f"bookferry {VERSION}\n", "")
    assert "publication_identifiers" in _run(installed, "tables", folder=tmp_path)[0]
    out, _ = _run(installed, "demo", "--backup-only", folder=tmp_path)
    assert "Complete: 5,445 publications; 109 requests" in out
    assert (tmp_path / "bookferry-demo" / "library-data" / "library.duckdb").is_file()
    config = str(tmp_path / "bookferry-demo" / "bookferry.toml")
    out, err = _run(installed, "ui", "--config", config, folder=tmp_path, status=2)
    assert (out, "Traceback" in err) == ("", False)
    assert 'pip install "bookferry[ui]"' in err


@pytest.mark.long
def test_an_old_python_gets_one_line() -> None:
    """Python 3.6 can read the file, and whatever it imports before it looks at the version."""
    source = (ROOT / "bookferry.py").read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 6))
    assert f">={'.'.join(map(str, bookferry.OLDEST))}" == PYPROJECT["project"]["requires-python"]
    old = "import runpy, sys; sys.version_info = (3, 9, 2, 'final', 0); runpy.run_module('bookferry', run_name='__main__')"
    process = subprocess.run(
        [sys.executable, "-c", old, "backup"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    expected = (
        f"error: Bookferry needs Python 3.11 or newer; {sys.executable} is Python 3.9.2. Run it with a newer one.\n"
    )
    assert (process.returncode, process.stdout, process.stderr) == (2, "", expected)
