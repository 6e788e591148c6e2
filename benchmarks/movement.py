"""Measures listings of libraries that people work on: what a listing has, what it proves, and how many requests it takes.

    python -m benchmarks.movement                       # 100 histories for each rate: about five minutes
    python -m benchmarks.movement --histories 5         # does it work?

Each history is a library of 2,000 to 50,000 publications, with random changes between requests: additions, deletions, both between the same
two requests (X-Total then stands still), and edits. `read_raw` reads it through the whole client, without a socket. The library knows
which records lived throughout, and which exist at the end; the reader does not.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

import httpx
import pyarrow.parquet as pq

from pipelines.backup.read import read_raw
from pipelines.service.client import LibraryClient
from pipelines.service.clock import SystemClock
from pipelines.service.http.budget import Budget
from pipelines.state.local import LocalState
from pipelines.store.snapshots.captures import Capture, CaptureFacts, ResourceFacts

BASE = "https://library.example.org"
PAGE = 50
SIZES = (2_000, 50_000)
RATES = (0, 45, 20, 8, 5)
"""Pages from one change to the next, on average; 0 is a library at rest."""
KINDS = ("add", "delete", "pair", "edit")


@dataclass
class ChangingLibrary(httpx.BaseTransport):
    """A library in the order of its ids, with random changes before its responses."""

    size: int
    pages_per_change: int
    newest_first: bool
    chance: random.Random
    requests: int = 0
    changes: int = 0
    throughout: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        # A library of some years has gaps where records were deleted.
        self.ids = [number for number in range(1, int(self.size * 1.2)) if self.chance.random() < 0.85][: self.size]
        self.throughout = set(self.ids)
        self._newest = self.ids[-1]

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return a page, after the changes before it."""
        if self.requests and self.pages_per_change and self.chance.random() < 1 / self.pages_per_change:
            self._change(self.chance.choice(KINDS))
        self.requests += 1
        number, total = int(request.url.params["page"]), len(self.ids)
        ids = self._page(number)
        last = max(1, ceil(total / PAGE))
        address = f"{BASE}/api/v2/publications/all?per_page={PAGE}&page="
        relations = {"first": 1, "prev": number - 1, "next": number + 1, "last": last}
        link = ", ".join(f'<{address}{page}>; rel="{rel}"' for rel, page in relations.items() if 1 <= page <= last)
        body = json.dumps({"records": [{"id": record_id, "title": f"Title {record_id}"} for record_id in ids]})
        return httpx.Response(
            200, content=body, headers={"X-Total": str(total), "Link": link, "content-type": "application/json"}
        )

    def _page(self, number: int) -> list[int]:
        start, end = (number - 1) * PAGE, number * PAGE
        if self.newest_first:
            total = len(self.ids)
            return self.ids[max(0, total - end) : max(0, total - start)][::-1]
        return self.ids[start:end]

    def _change(self, kind: str) -> None:
        self.changes += kind != "edit"
        if kind in ("delete", "pair"):
            self.throughout.discard(self.ids.pop(self.chance.randrange(len(self.ids))))
        if kind in ("add", "pair"):
            self._newest += self.chance.randrange(1, 3)
            self.ids.append(self._newest)


@dataclass
class Outcome:
    """The result of one history."""

    complete: bool
    missing: int
    """Records that lived throughout, and are not in the listing."""
    twice: int
    requests: float
    """As a multiple of the pages that the library had at first."""
    problems: list[str]


def run(seed: int, rate: int, folder: Path) -> Outcome:
    """Read one library."""
    chance = random.Random(f"{rate}/{seed}")
    size = round(SIZES[0] * (SIZES[1] / SIZES[0]) ** chance.random())
    library = ChangingLibrary(size, rate, newest_first=seed % 4 == 3, chance=chance)
    pages = ceil(len(library.ids) / PAGE)
    with ExitStack() as closing:
        budget = Budget(LocalState(folder / "state.db"), BASE, 10_000_000, SystemClock())
        closing.callback(budget.close)
        client = LibraryClient(
            base_url=BASE,
            api="v2",
            auth=httpx.BasicAuth("reader", "secret"),
            budget=budget,
            requests_per_minute=1_000_000,
            clock=SystemClock(),
            transport=library,
        )
        capture = Capture.create(
            folder / "capture",
            CaptureFacts(
                tenant="library",
                snapshot="20260101T000000Z",
                base_url=BASE,
                api="v2",
                started_at="2026-01-01T00:00:00Z",
                tool="benchmark",
                wanted=["publications"],
            ),
        )
        facts = read_raw(capture, client, "publications")
        assert isinstance(facts, ResourceFacts)
        ids = pq.read_table(capture.raw_path("publications"), columns=["id"]).column("id").to_pylist()
    return Outcome(
        facts.complete,
        len(library.throughout.difference(ids)),
        len(ids) - len(set(ids)),
        library.requests / pages,
        facts.problems,
    )


def histories(rate: int, count: int) -> Iterator[Outcome]:
    """Read so many libraries with this rate of changes."""
    for seed in range(count):
        with tempfile.TemporaryDirectory(prefix="bookferry-movement-") as folder:
            yield run(seed, rate, Path(folder))


def main() -> None:
    """Print the table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=100, help="for each rate (default: 100)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    rows = []
    for rate in RATES:
        outcomes = list(histories(rate, arguments.histories))
        ratios = sorted(outcome.requests for outcome in outcomes)
        rows.append(
            {
                "pages_per_change": rate,
                "histories": len(outcomes),
                "complete": sum(outcome.complete for outcome in outcomes),
                "with_missing": sum(outcome.missing > 0 for outcome in outcomes),
                "with_twice": sum(outcome.twice > 0 for outcome in outcomes),
                "requests_mean": round(sum(ratios) / len(ratios), 3),
                "requests_most": round(ratios[-1], 3),
                "problems": sorted({problem for outcome in outcomes for problem in outcome.problems})[:5],
            }
        )
    print(json.dumps(rows, indent=2) if arguments.json else table(rows))


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """The rows as Markdown."""
    columns = [name for name in rows[0] if name != "problems"]
    lines = ["| " + " | ".join(name.replace("_", " ") for name in columns) + " |", "|" + "--:|" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(str(row[name]) for name in columns) + " |" for row in rows)])


if __name__ == "__main__":
    main()
