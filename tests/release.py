"""`make release-check`: is this checkout ready to be released? Prints each check with ok, or FAILED and why; exit 1 if one failed."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]
PYTHON = sys.executable
LOCKS = ("requirements-dev.lock", "requirements.lock", "deploy/requirements.lock")


class NotReadyError(Exception):
    """A check failed; the message says why and what to do."""


class Release(NamedTuple):
    """What is to be released: a checkout, a folder for what is built of it, and today's date."""

    root: Path
    built: Path
    today: date

    @property
    def version(self) -> str:
        """The version that pyproject.toml names."""
        return str(tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])

    def run(self, *command: str | Path) -> str:
        """Standard output of a command in the checkout; NotReadyError with the end of its messages if it fails."""
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)
        if done.returncode:
            said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
            raise NotReadyError(f"{shlex.join(map(str, command))}\n{said}")
        return done.stdout


def check_version(release: Release) -> None:
    """CHANGELOG.md begins with the version of pyproject.toml and a date that has come, and CITATION.cff has both."""
    text = (release.root / "CHANGELOG.md").read_text(encoding="utf-8")
    version, when = re.findall(r"^## (\S+) \((.*)\)$", text, re.MULTILINE)[0]
    is_date = re.fullmatch(r"\d{4}-\d\d-\d\d", when) is not None and date.fromisoformat(when) <= release.today
    if version != release.version or not is_date:
        raise NotReadyError(f"CHANGELOG.md begins with {version} ({when}) instead of {release.version} (YYYY-MM-DD).")
    citation = yaml.safe_load((release.root / "CITATION.cff").read_text(encoding="utf-8"))
    if (citation["version"], str(citation.get("date-released"))) != (version, when):
        raise NotReadyError(f"CITATION.cff: set `version: {version}` and `date-released: {when}`.")


def check_tree(release: Release) -> None:
    """Nothing is uncommitted."""
    if changed := release.run("git", "status", "--porcelain"):
        raise NotReadyError(f"Commit or remove:\n{changed.rstrip()}")


def check_tag(release: Release) -> None:
    """The version is a new one, because an index takes no version twice; its tag may be on this commit."""
    if release.run("git", "tag", "--list", f"v{release.version}", "--no-contains", "HEAD").strip():
        raise NotReadyError(f"v{release.version} was released: raise the version in pyproject.toml.")


def check_locks(release: Release) -> None:
    """They are what `make lock` makes of pyproject.toml without newer versions."""
    commands = [line for line in release.run("make", "--dry-run", "lock").splitlines() if " pip compile " in line]
    stale = []
    for line in commands:
        *words, _option, lock = (word for word in shlex.split(line) if word != "--upgrade")
        made = release.built / Path(lock).as_posix().replace("/", "-")
        shutil.copy(release.root / lock, made)
        release.run(*words, "-o", made)
        if _versions(made) != _versions(release.root / lock):
            stale.append(lock)
    if stale or len(commands) != len(LOCKS):
        raise NotReadyError(f"Run `make lock`: {', '.join(stale)}")


def _versions(lock: Path) -> list[str]:
    """The requirements of a lock. Its hashes may grow when a project adds a wheel for another platform."""
    return [line for line in lock.read_text(encoding="utf-8").splitlines() if "--hash" not in line]


def check_build(release: Release) -> None:
    """An sdist, and a wheel from it."""
    release.run(PYTHON, "-m", "build", "--no-isolation", "--outdir", release.built, release.root)
    kinds = sorted(path.name for path in release.built.glob(f"bookferry-{release.version}*"))
    if kinds != [f"bookferry-{release.version}-py3-none-any.whl", f"bookferry-{release.version}.tar.gz"]:
        raise NotReadyError(f"What was built: {', '.join(kinds)}")


CHECKS: dict[str, Callable[[Release], None]] = {
    "version and date in CHANGELOG.md and CITATION.cff": check_version,
    "nothing uncommitted": check_tree,
    "a version that is not released": check_tag,
    "locks up to date": check_locks,
    "sdist and wheel build": check_build,
}
"""What the command walks through, in this order; a later check may use what an earlier one built."""


def walk(release: Release, checks: dict[str, Callable[[Release], None]]) -> bool:
    """Print the result of each check. Returns whether all are ok."""
    failed = 0
    for name, check in checks.items():
        try:
            check(release)
        except (NotReadyError, OSError, ValueError) as error:
            failed += 1
            sys.stdout.write(f"FAILED  {name}\n        {str(error).replace(chr(10), chr(10) + ' ' * 8)}\n")
        else:
            sys.stdout.write(f"ok      {name}\n")
        sys.stdout.flush()
    return not failed


def main() -> None:
    """Check the checkout of this file."""
    with tempfile.TemporaryDirectory() as folder:
        release = Release(ROOT, Path(folder), datetime.now(UTC).date())
        if not walk(release, CHECKS):
            sys.exit(1)
        tag = f"v{release.version}"
        sys.stdout.write(f"\nReady. When CI is green: git tag --sign {tag} -m {tag} && git push origin {tag}\n")


if __name__ == "__main__":
    main()
