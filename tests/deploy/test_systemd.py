"""The units of `deploy/systemd`: systemd can read them, they expose little, and each is named where operators read."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import ROOT

UNITS = ROOT / "deploy" / "systemd"
CELERY = ROOT / "deploy" / "celery"
SERVICES = sorted([*UNITS.glob("*.service"), *CELERY.glob("*.service")])

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")


@pytest.mark.long
@needs_systemd
def test_systemd_finds_no_fault(tmp_path: Path) -> None:
    """With a program at the place of ours: a missing program is a fault, too."""
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("bookferry", "celery"):
        (programs / name).symlink_to("/bin/true")
    names = []
    for path in [*UNITS.iterdir(), *CELERY.glob("*.service")]:
        text = path.read_text(encoding="utf-8").replace("/srv/bookferry", str(tmp_path))
        text = text.replace("/opt/bookferry/bin", str(programs))
        (tmp_path / path.name).write_text(text, encoding="utf-8")
        names.append(str(tmp_path / path.name.replace("@", "@old")))
    command = ["systemd-analyze", "verify", "--man=no", *names]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert [line for line in process.stderr.splitlines() if "bookferry" in line] == []


@needs_systemd
@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_systemd_finds_little_exposed(path: Path) -> None:
    """On its scale from 0 (safe) to 10."""
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=25", str(path)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unrecognized option" in process.stderr:
        pytest.skip("this systemd judges running units only")
    assert process.returncode == 0, process.stdout[-1000:]
