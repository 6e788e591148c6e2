"""Every benchmark in one go: `python -m benchmarks`, or `make bench`, writes results.json and the tables of README.md.

    python -m benchmarks --only start report      # these alone; the other results stay
    python -m benchmarks --quick --output FILE    # small libraries: does it work?
    python -m benchmarks --tables                 # only the tables again, from results.json

Each benchmark is a process of its own. What differs by more than a tenth from the results that were there is printed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.machine import describe

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results.json")
README = Path(__file__).with_name("README.md")

BENCHMARKS: dict[str, tuple[list[str], list[str]]] = {
    "backup": ([], ["--quick"]),
    "start": ([], ["--runs", "1"]),
    "night": ([], ["--records", "50", "1000"]),
    "plan": ([], ["--records", "2000"]),
    "report": ([], ["--records", "2000"]),
    "postgres": ([], ["--records", "2000", "--pandas", "500"]),
    "movement": ([], ["--histories", "2"]),
}
"""Module of each benchmark → its arguments, and those for a quick run."""

APART = 0.1
"""Share by which two runs may differ without a word."""

_PLACE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    """Measure, write, compare."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS), help="default: all")
    parser.add_argument("--quick", action="store_true", help="small libraries: does it work?")
    parser.add_argument("--output", type=Path, default=RESULTS, help="default: benchmarks/results.json")
    parser.add_argument("--tables", action="store_true", help="only write the tables of README.md again")
    arguments = parser.parse_args()
    results = json.loads(arguments.output.read_text("utf-8")) if arguments.output.exists() else {}
    if not arguments.tables:
        for name in arguments.only:
            measured = measure(name, quick=arguments.quick)
            for line in differences(results.get(name, {}).get("figures"), measured["figures"]):
                print(f"{name}: {line}")
            results[name] = measured
            arguments.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if arguments.output == RESULTS:
        README.write_text(with_tables(README.read_text("utf-8"), results), encoding="utf-8")


def measure(name: str, *, quick: bool) -> dict[str, Any]:
    """Run one benchmark. Its figures with the day, the machine and the versions of what was measured."""
    whole, small = BENCHMARKS[name]
    print(f"=== {name}", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *(small if quick else whole)]
    finished = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return {"day": str(datetime.now(UTC).date()), **describe(), "figures": json.loads(finished.stdout)}


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Lines about the numbers that differ by more than `APART` between two runs."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() & after.keys():
            yield from differences(before[key], after[key], f"{path}.{key}" if path else key)
    elif isinstance(before, list) and isinstance(after, list):
        for place, (one, other) in enumerate(zip(before, after, strict=False)):
            yield from differences(one, other, f"{path}[{place}]")
    elif (
        isinstance(before, int | float) and isinstance(after, int | float) and abs(after - before) > APART * abs(before)
    ):
        yield f"{path} {before:,.4g} → {after:,.4g}"


def with_tables(page: str, results: dict[str, Any]) -> str:
    """README.md with the table of each result in its place: `<!-- table: NAME -->` to `<!-- end -->`."""

    def table(match: re.Match[str]) -> str:
        result = results.get(match[2])
        if result is None:
            return match[0]
        made: str = importlib.import_module(f"benchmarks.{match[2]}").table(result["figures"])
        versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
        return f"{match[1]}\n{made}\n\n{result['day']}; {result['machine']}; {versions}.\n\n{match[3]}"

    return _PLACE.sub(table, page)


if __name__ == "__main__":
    main()
