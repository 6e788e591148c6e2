"""`make release-check` finds what is not ready. What is built and installed: tests/test_wheel.py and tests/test_site.py."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from tests.release import (
    CHECKS,
    NotReadyError,
    Release,
    check_changelog,
    check_citation,
    check_tag,
    check_tree,
    walk,
)

READY = {
    "pyproject.toml": '[project]\nname = "bookferry"\nversion = "1.2.3"\n',
    "CHANGELOG.md": "# Changelog\n\n## 1.2.3 (2026-11-20)\n\n## 1.2.2 (2026-10-01)\n",
    "CITATION.cff": "cff-version: 1.2.0\nversion: 1.2.3\ndate-released: 2026-11-20\n",
}
WITHOUT_BUILDING = (check_changelog, check_citation, check_tree, check_tag)


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def release(tmp_path: Path) -> Release:
    """A checkout that is ready."""
    for name, text in READY.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "ready")
    return Release(tmp_path, tmp_path / "built", date(2026, 11, 20))


def commit(release: Release, name: str, old: str, new: str) -> None:
    path = release.root / name
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    git(release.root, "commit", "-am", "changed")


def test_a_checkout_that_is_ready_is_ready(release: Release) -> None:
    """Also when its tag is there already, as on the machine that publishes it."""
    git(release.root, "tag", "v1.2.3")
    for check in WITHOUT_BUILDING:
        check(release)


@pytest.mark.parametrize(
    ("name", "change", "check", "said"),
    [
        ("pyproject.toml", ("1.2.3", "1.3.0"), check_changelog, "1.3.0, and the newest of CHANGELOG.md is 1.2.3"),
        ("CHANGELOG.md", ("2026-11-20", "unreleased"), check_changelog, "`unreleased`"),
        ("CHANGELOG.md", ("2026-11-20", "2026-11-21"), check_changelog, "`2026-11-21`"),
        ("CITATION.cff", ("1.2.3", "1.2.2"), check_citation, "version: 1.2.3"),
        ("CITATION.cff", ("date-released: 2026-11-20\n", ""), check_citation, "date-released"),
    ],
)
def test_versions_and_dates_that_differ_are_found(
    release: Release, name: str, change: tuple[str, str], check: Callable[[Release], None], said: str
) -> None:
    commit(release, name, *change)
    with pytest.raises(NotReadyError) as caught:
        check(release)
    assert said in str(caught.value)


def test_a_file_that_is_not_committed_is_named(release: Release) -> None:
    (release.root / "forgotten.txt").touch()
    with pytest.raises(NotReadyError, match=r"forgotten\.txt"):
        check_tree(release)


def test_a_version_that_was_released_is_refused(release: Release) -> None:
    git(release.root, "tag", "v1.2.3")
    commit(release, "CHANGELOG.md", "# Changelog", "# Changes")
    with pytest.raises(NotReadyError, match="raise the version"):
        check_tag(release)


def test_every_check_is_printed_whatever_fails(release: Release, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_release: Release) -> None:
        raise NotReadyError("a reason\nof two lines")

    assert not walk(release, {"one": fail, "another": check_tree})
    assert capsys.readouterr().out == "FAILED  one\n        a reason\n        of two lines\nok      another\n"
    assert walk(release, {"another": check_tree})
    assert len(CHECKS) == len(set(CHECKS.values())) == 10
