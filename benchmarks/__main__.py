"""Every benchmark in one go: `python -m benchmarks`, or `make bench`, writes results.json and the tables of README.md.

    python -m benchmarks --only start report      # these alone; the other results stay
    python -m benchmarks --quick --output FILE    # small libraries: does it work?

Each benchmark is a process of its own.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measured import ROOT, machine

RESULTS = Path(__file__).with_name("results.json")
README = Path(__file__).with_name("README.md")

BENCHMARKS: dict[str, list[str]] = {
    "backup": ["--records", "500", "--runs", "1"],
    "start": ["--runs", "1"],
    "night": ["--records", "50"],
    "plan": ["--records", "500"],
    "report": ["--records", "500"],
    "postgres": ["--records", "500", "--pandas", "200"],
}
"""Module of each benchmark → its arguments for a quick run."""

SHARED_LIBRARY = ("report", "postgres")

_PLACE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS), help="default: all")
    parser.add_argument("--quick", action="store_true", help="small libraries: does it work?")
    parser.add_argument("--output", type=Path, default=RESULTS, help="default: benchmarks/results.json")
    arguments = parser.parse_args()
    results = json.loads(arguments.output.read_text("utf-8")) if arguments.output.exists() else {}
    with tempfile.TemporaryDirectory() as library:
        for name in arguments.only:
            print(f"=== {name}", file=sys.stderr, flush=True)
            options = BENCHMARKS[name] if arguments.quick else []
            options = [*options, *(["--data", library] if name in SHARED_LIBRARY else [])]
            command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *options]
            finished = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
            measured = {"day": str(datetime.now(UTC).date()), "machine": machine()}
            results[name] = {**measured, "figures": json.loads(finished.stdout)}
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

    return _PLACE.sub(table, page)


if __name__ == "__main__":
    main()
