"""The project as a stranger gets it: `make` targets, the locks, and nothing in it of the machine it was made on."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import ROOT

LOCK_NAMES = ("requirements.lock", "requirements-dev.lock", "deploy/requirements.lock")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = {name: (ROOT / name).read_text(encoding="utf-8") for name in LOCK_NAMES}
PACKAGES = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


def tracked(*folders: str) -> list[Path]:
    """Files that git knows, below the given folders."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def _locked(lock: str) -> Iterator[tuple[str, str]]:
    """Name and entry of each requirement in a lock, its continued lines joined."""
    for entry in LOCKS[lock].replace("\\\n", " ").splitlines():
        if entry.strip() and not entry.startswith("#"):
            yield _name(entry), entry


def _name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None, requirement
    return re.sub(r"[-_.]+", "-", match[0]).lower()


@pytest.mark.parametrize("lock", LOCK_NAMES)
def test_a_lock_has_a_version_and_hashes_for_every_entry_and_no_address(lock: str) -> None:
    """`make` installs with --require-hashes from whatever index the machine is set to use."""
    entry_form = r"[A-Za-z0-9._-]+(\[[a-z0-9,_ -]+\])?==[^ ;]+( *;[^\\]*?)?( +--hash=sha256:[0-9a-f]{64})+ *"
    entries = list(_locked(lock))
    assert len(entries) > 50
    assert [entry for _, entry in entries if not re.fullmatch(entry_form, entry)] == []
    assert not re.search(r"://|--index|--extra-index|--find-links|--trusted-host| @ ", LOCKS[lock])


@pytest.mark.long
def test_tracked_files_name_no_place_of_this_machine() -> None:
    """Nor an index that only this machine can reach."""
    places = [str(place).encode() for place in {ROOT, Path(sys.prefix), Path.home() / "x"}]
    places = [place.removesuffix(b"x") for place in places if place.count(b"/") > 1]
    paths = [path for path in tracked() if any(place in path.read_bytes() for place in places)]
    assert paths == []
