"""dlt: its declarative REST source into Parquet files on disk, children in tables of their own.

The settings are those of its documentation for such an API: Basic auth, the paginator that follows `Link`, the largest page.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import dlt
import pyarrow.parquet as pq
from dlt.sources.rest_api import rest_api_source


def copy(base_url: str, folder: Path) -> None:
    """Load the library at `base_url` into `folder`."""
    source = rest_api_source(
        {
            "client": {
                "base_url": f"{base_url}/api/v2/",
                "auth": {"type": "http_basic", "username": "bench", "password": "bench"},
                "paginator": {"type": "header_link"},
            },
            "resources": [
                {
                    "name": "publications",
                    "primary_key": "id",
                    "write_disposition": "replace",
                    "endpoint": {"path": "publications/all", "params": {"per_page": 50}, "data_selector": "records"},
                }
            ],
        }
    )
    pipeline = dlt.pipeline(
        "bench",
        pipelines_dir=str(folder / "work"),
        destination=dlt.destinations.filesystem(bucket_url=(folder / "tables").as_uri()),
        dataset_name="library",
    )
    pipeline.run(source, loader_file_format="parquet").raise_on_failed_jobs()


def main(base_url: str, folder: Path, copied_by: Callable[[str, Path], None] = copy) -> None:
    """Run one copy, print its figures, and check that it is complete."""
    os.environ |= {"RUNTIME__DLTHUB_TELEMETRY": "false", "RUNTIME__LOG_LEVEL": "ERROR"}
    started = time.perf_counter()
    copied_by(base_url, folder)
    seconds = time.perf_counter() - started
    files = (folder / "tables" / "library" / "publications").glob("*.parquet")
    records = sum(pq.read_metadata(path).num_rows for path in files)
    print(json.dumps({"records": records, "seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
