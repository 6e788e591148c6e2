"""A script of one screen: httpx reads every page, `pandas.json_normalize` makes one table of them, and it is written as Parquet.

Authors, identifiers and files stay lists inside the table. Nothing is proved, and the whole library is in memory.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import httpx
import pandas as pd


def main(base_url: str, folder: Path) -> None:
    """Run one copy, and print its figures."""
    started = time.perf_counter()
    records: list[dict[str, object]] = []
    with httpx.Client(auth=("bench", "bench")) as client:
        address: str | None = f"{base_url}/api/v2/publications/all?per_page=50"
        while address:
            response = client.get(address).raise_for_status()
            records += response.json()["records"]
            address = response.links.get("next", {}).get("url")
    pd.json_normalize(records, max_level=0).to_parquet(folder / "publications.parquet")
    print(json.dumps({"records": len(records), "seconds": time.perf_counter() - started}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
