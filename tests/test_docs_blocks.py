"""Every block on every page is checked where it is commands of ours or an example of a configuration.

The blocks that a reader follows are also run, where they stand together: tests/test_docs_*.py, tests/sandbox/test_readme.py.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from pipelines.migration.mapping.mapping_file import MappingFile
from pipelines.settings.config_file import load_settings
from sandbox.__main__ import _parser
from tests.cli.command import ROOT
from tests.test_docs_migrating import options_of
from tests.test_project import tracked

TARGETS = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
SANDBOX_OPTIONS = {option for action in _parser()._actions for option in action.option_strings}
SCRIPT = re.compile(r"\$\(|^#(?!.*as root).*\n\w+=", re.MULTILINE)
"""What tells a script from a list of commands; scripts are run where they are tested."""


class Block(NamedTuple):
    """A block of code, and where it begins."""

    page: str
    line: int
    language: str
    text: str


def blocks() -> list[Block]:
    """All of them; one that is indented, in a list, too."""
    all_blocks = []
    for path in tracked("*.md"):
        page = path.read_text(encoding="utf-8")
        for match in re.finditer(r"^( *)```([^\n`]*)\n(.*?)^\1```$", page, re.MULTILINE | re.DOTALL):
            line = page.count("\n", 0, match.start()) + 1
            all_blocks.append(Block(str(path.relative_to(ROOT)), line, match[2], match[3]))
    return all_blocks


def check_shell(block: Block, _folder: Path) -> None:
    """The shell can read it; each command of ours exists with its options, and so does each file, module and target that it names."""
    process = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    if SCRIPT.search(block.text):
        return
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        for number, word in enumerate(words):
            if Path(word).name == "bookferry" and (number == 0 or words[number - 1] == "|"):
                check_command([*words[number + 1 :], "|"])
        if words[:1] == ["make"]:
            assert set(words[1:]) <= set(TARGETS)
        if "-m" in words:
            module = words[words.index("-m") + 1].replace(".", "/")
            assert (ROOT / f"{module}.py").exists() or (ROOT / module / "__main__.py").exists(), module
        named = [word for word in words if re.match(r"(tests|deploy|docs)/", word)]
        assert [word for word in named if not any(ROOT.glob(word))] == []


def check_command(words: list[str]) -> None:
    """`bookferry WORDS`, up to what the shell makes of its output."""
    words = words[: min(words.index(end) for end in ("|", ">") if end in words)]
    options = options_of(words) | (SANDBOX_OPTIONS if words[0] == "sandbox" else set())
    assert {word.partition("=")[0] for word in words if re.match(r"--\w", word)} <= options


def check_console(block: Block, folder: Path) -> None:
    """Commands after `$`, and what they print."""
    typed = [line.removeprefix("$ ") for line in block.text.splitlines() if line.startswith("$ ")]
    assert typed
    check_shell(block._replace(text="\n".join(typed)), folder)


def check_toml(block: Block, folder: Path) -> None:
    """Each example is a mapping file, a configuration, or a part of one."""
    if ".fields]" in block.text:
        assert len(MappingFile(folder / "old-to-new.toml", block.text).questions()) == block.text.count('"?"')
        return
    (folder / "bookferry.toml").write_text(block.text, encoding="utf-8")
    load_settings(folder / "bookferry.toml")


CHECKS: dict[str, Callable[[Block, Path], object]] = {
    "sh": check_shell,
    "console": check_console,
    "toml": check_toml,
}
"""Language → what is checked of a block in it."""


@pytest.mark.parametrize(
    "block", [block for block in blocks() if block.language in CHECKS], ids=lambda block: f"{block.page}:{block.line}"
)
def test_a_block_is_what_it_claims_to_be(block: Block, tmp_path: Path) -> None:
    CHECKS[block.language](block, tmp_path)
