"""Airbyte's CDK: a declarative source, whose messages are written to a file as JSON lines; it has no Parquet without a platform.

It runs in an environment of its own (benchmarks/peers/requirements.txt), because it pins other versions than Bookferry.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from airbyte_cdk import AirbyteEntrypoint
from airbyte_cdk.sources.declarative.concurrent_declarative_source import ConcurrentDeclarativeSource


def manifest(base_url: str) -> dict[str, Any]:
    """The source as its documentation describes one: Basic sign-in, the next page by `Link`, fields of any type."""
    return {
        "version": "6.0.0",
        "type": "DeclarativeSource",
        "check": {"type": "CheckStream", "stream_names": ["publications"]},
        "streams": [
            {
                "type": "DeclarativeStream",
                "name": "publications",
                "primary_key": ["id"],
                "retriever": {
                    "type": "SimpleRetriever",
                    "requester": {
                        "type": "HttpRequester",
                        "url_base": f"{base_url}/api/v2/",
                        "path": "publications/all",
                        "http_method": "GET",
                        "authenticator": {"type": "BasicHttpAuthenticator", "username": "bench", "password": "bench"},
                    },
                    "record_selector": {
                        "type": "RecordSelector",
                        "extractor": {"type": "DpathExtractor", "field_path": ["records"]},
                    },
                    "paginator": {
                        "type": "DefaultPaginator",
                        "page_size_option": {
                            "type": "RequestOption",
                            "inject_into": "request_parameter",
                            "field_name": "per_page",
                        },
                        "page_token_option": {"type": "RequestPath"},
                        "pagination_strategy": {
                            "type": "CursorPagination",
                            "page_size": 50,
                            "cursor_value": "{{ headers['link']['next']['url'] }}",
                            "stop_condition": "{{ 'next' not in headers['link'] }}",
                        },
                    },
                },
                "schema_loader": {
                    "type": "InlineSchemaLoader",
                    "schema": {"type": "object", "additionalProperties": True, "properties": {}},
                },
            }
        ],
        "spec": {"type": "Spec", "connection_specification": {"type": "object", "properties": {}}},
    }


CATALOG = {
    "streams": [
        {
            "stream": {"name": "publications", "json_schema": {}, "supported_sync_modes": ["full_refresh"]},
            "sync_mode": "full_refresh",
            "destination_sync_mode": "overwrite",
        }
    ]
}


def main(base_url: str, folder: Path) -> None:
    """Run one copy, and print its figures."""
    paths = {name: folder / f"{name}.json" for name in ("config", "catalog")}
    paths["config"].write_text("{}")
    paths["catalog"].write_text(json.dumps(CATALOG))
    started = time.perf_counter()
    source = ConcurrentDeclarativeSource(catalog=None, config={}, state=None, source_config=manifest(base_url))
    entry = AirbyteEntrypoint(source)
    asked = ["read", "--config", str(paths["config"]), "--catalog", str(paths["catalog"])]
    records = 0
    with (folder / "messages.jsonl").open("w") as messages:
        for message in entry.run(AirbyteEntrypoint.parse_args(asked)):
            records += '"type":"RECORD"' in message
            messages.write(message + "\n")
    print(json.dumps({"records": records, "seconds": time.perf_counter() - started}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
