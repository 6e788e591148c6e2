"""What lies in the files of a folder, as text: there no secret may be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq


def texts_below(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield path and content of each file below a folder; of tables all but the payloads."""
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            names = [name for name in table.column_names if name != "payload"]
            yield str(path), json.dumps(table.select(names).to_pylist(), default=str)
        elif path.is_file():
            yield str(path), path.read_bytes().decode("utf-8", "replace")
