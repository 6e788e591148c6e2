"""dlt as in `dlt_parquet`, with the settings that its page on performance recommends: worker processes, and files small enough to share.

See https://dlthub.com/docs/reference/performance.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchmarks.peers import dlt_parquet

SETTINGS = {
    "NORMALIZE__WORKERS": str(os.cpu_count() or 1),
    "SOURCES__DATA_WRITER__BUFFER_MAX_ITEMS": "5000",
    "SOURCES__DATA_WRITER__FILE_MAX_ITEMS": "10000",
    "NORMALIZE__DATA_WRITER__BUFFER_MAX_ITEMS": "5000",
}

if __name__ == "__main__":
    os.environ |= SETTINGS
    dlt_parquet.main(sys.argv[1], Path(sys.argv[2]))
