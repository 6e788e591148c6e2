"""dlt by its Arrow path: its REST client reads the pages, and each becomes an Arrow table of one schema, which dlt writes as it is.

dlt then neither infers types nor makes tables of the children: authors, identifiers and files stay lists inside the one table.
See https://dlthub.com/docs/dlt-ecosystem/verified-sources/arrow-pandas.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dlt
import pyarrow as pa
from dlt.sources.helpers.rest_client import RESTClient
from dlt.sources.helpers.rest_client.auth import HttpBasicAuth
from dlt.sources.helpers.rest_client.paginators import HeaderLinkPaginator

from benchmarks.peers import dlt_tables

PAGES_A_TABLE = 200
"""10,000 records: its page on performance advises large tables."""


def copy(base_url: str, folder: Path) -> None:
    """Load the library at `base_url` into `folder`."""
    client = RESTClient(
        f"{base_url}/api/v2/",
        auth=HttpBasicAuth("bench", "bench"),
        paginator=HeaderLinkPaginator(),
        data_selector="records",
    )

    @dlt.resource(name="publications", write_disposition="replace")
    def publications() -> Iterator[pa.Table]:
        schema, held = None, []
        for number, page in enumerate(client.paginate("publications/all", params={"per_page": 50}), 1):
            held += page
            if number % PAGES_A_TABLE == 0:
                schema = schema or learned_schema(held)
                yield pa.Table.from_pylist(held, schema=schema)
                held = []
        if held:
            yield pa.Table.from_pylist(held, schema=schema or learned_schema(held))

    pipeline = dlt.pipeline(
        "bench",
        pipelines_dir=str(folder / "work"),
        destination=dlt.destinations.filesystem(bucket_url=(folder / "tables").as_uri()),
        dataset_name="library",
    )
    pipeline.run(publications(), loader_file_format="parquet").raise_on_failed_jobs()


def learned_schema(records: list[dict[str, Any]]) -> pa.Schema:
    """The schema of the first records, as a person would infer it; a field that was empty in all of them is text."""
    inferred = pa.Table.from_pylist(records).schema
    return pa.schema([field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in inferred])


if __name__ == "__main__":
    dlt_tables.main(sys.argv[1], Path(sys.argv[2]), copy)
