"""Every benchmark in one go: `python -m benchmarks`, or `make bench`, writes results.json and the tables of README.md.

python -m benchmarks --only start report      # these alone; the other results stay
python -m benchmarks --quick --output FILE    # small libraries: does it work?
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measured import machine

RESULTS = Path(__file__).with_name("results.json")
README = Path(__file__).with_name("README.md")

BENCHMARKS: dict[str, dict[str, Any]] = {
    "backup": {"sizes": [500], "runs": 1},
    "start": {"runs": 1},
    "night": {"sizes": [50]},
    "plan": {"records": 500},
    "report": {"records": 500},
    "postgres": {"records": 500, "pandas": 200},
}
"""Module of each benchmark → what its `measure` is given for a quick run.

In this order: a process counts the memory of the one that started it as its own, and the first three import little.
"""


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS), help="default: all")
    parser.add_argument("--quick", action="store_true", help="small libraries: does it work?")
    parser.add_argument("--output", type=Path, default=RESULTS, help="default: benchmarks/results.json")
    arguments = parser.parse_args()
    results = json.loads(arguments.output.read_text("utf-8")) if arguments.output.exists() else {}
    with tempfile.TemporaryDirectory() as folder:  # `report` and `postgres` share their library
        for name in arguments.only:
            print(f"=== {name}", file=sys.stderr, flush=True)
            benchmark = importlib.import_module(f"benchmarks.{name}")
            figures = benchmark.measure(Path(folder), **(BENCHMARKS[name] if arguments.quick else {}))
            results[name] = {"day": str(datetime.now(UTC).date()), "machine": machine(), "figures": figures}
            arguments.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if arguments.output == RESULTS:
        README.write_text(with_tables(README.read_text("utf-8"), results), encoding="utf-8")


def with_tables(page: str, results: dict[str, Any]) -> str:
    """README.md with the table of each result in its place: `<!-- table: NAME -->` to `<!-- end -->`."""

    def table(match: re.Match[str]) -> str:
        result = results.get(match[2])
        if result is None:
            return match[0]
        made: str = importlib.import_module(f"benchmarks.{match[2]}").table(result["figures"])
        return f"{match[1]}\n{made}\n\n{result['day']}; {result['machine']}.\n\n{match[3]}"

    return re.sub(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", table, page, flags=re.DOTALL)


if __name__ == "__main__":
    main()
