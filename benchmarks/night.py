"""What a night takes besides the service's time: from the start to the first page, and from the last page to the end.

`bookferry backup` runs twice for each library, the second time with a snapshot to compare with. The library of 5,445 publications has the
real records of the sandbox, the others have generated ones. Where the server has no limit, what a backup does beside the reading has less
time than in production.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measured import BOOKFERRY, NO_LIMIT, TENANT, Figures, configured, markdown, run, server

REAL = 5_445
SIZES = (50, REAL, 100_000)


def measure(_folder: Path, sizes: Sequence[int] = SIZES, requests_per_minute: int = NO_LIMIT) -> Figures:
    """Two nights of each library. `requests_per_minute`: as the service limits them, or not."""
    return {"nights": [figures for size in sizes for figures in nights(size, requests_per_minute)]}


def nights(records: int, requests_per_minute: int) -> Iterator[Figures]:
    """The nights of one library, in a data folder of its own."""
    library = ["--real"] if records == REAL else ["--records", str(records)]
    with tempfile.TemporaryDirectory() as folder:
        for night in ("first", "second"):
            with server("--times", *library) as (base_url, end_server):
                environment = configured(base_url, Path(folder), requests_per_minute)
                begun = time.monotonic()
                cost = run([BOOKFERRY, "backup", TENANT, "--json"], cwd=folder, env=environment)
                ended = time.monotonic()
                first, *later = json.loads(end_server())
            last = later[-1] if later else first  # one and the same page of a small library
            parts = {"start": first - begun, "reading": last - first, "end": ended - last}
            seconds = {f"{name}_seconds": round(value, 2) for name, value in parts.items()}
            yield {"publications": records, "night": night, **seconds, "cpu_seconds": round(cost.cpu_seconds, 2)}


def table(figures: Figures) -> str:
    """The figures as Markdown."""
    columns = ["publications", "night", "start → first request", "reading", "last request → end", "CPU seconds"]
    return markdown(columns, [[*night.values()] for night in figures["nights"]])
