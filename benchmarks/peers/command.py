"""`bookferry backup TENANT --json` as a person runs it, with start-up, Dagster and the first use of a data folder."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.peers.configuration import TENANT, write_configuration


def main(base_url: str, folder: Path) -> None:
    """Run the command, print its figures, and check that its snapshot is complete."""
    config = write_configuration(base_url, folder)
    bookferry = Path(sys.executable).with_name("bookferry")
    started = time.perf_counter()
    finished = subprocess.run(
        [bookferry, "backup", TENANT, "--config", config, "--json"], stdout=subprocess.PIPE, check=True
    )
    seconds = time.perf_counter() - started
    result = json.loads(finished.stdout)
    assert result["complete"], result
    print(json.dumps({"records": result["counts"]["publications"], "seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
