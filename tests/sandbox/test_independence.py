"""The sandbox shares no code with the client, which it tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
OURS = {"pipelines", "resources", "assets_defs", "cli", "tests", "benchmarks"}


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


SANDBOX = sorted((ROOT / "sandbox").rglob("*.py"))


def test_the_sandbox_imports_nothing_of_the_client() -> None:
    """A misunderstanding of the service must not be on both sides."""
    assert [path for path in SANDBOX if set(imported(path)) & OURS] == []


def test_only_the_clock_tells_the_time() -> None:
    """Only clock.py reads the time; everything else gets a clock."""
    assert [path.name for path in SANDBOX if "time" in set(imported(path))] == ["clock.py"]
