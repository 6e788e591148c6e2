"""Makes a dump of a database into which a checkout has loaded some nights of two libraries: a later Bookferry must go on with it.

Run `python tests/compatibility/make_database.py ARCHIVE NIGHTS` with PYTHONPATH set to that checkout.
"""

from __future__ import annotations

import lzma
import subprocess
import sys
import tempfile
from pathlib import Path

import sqlalchemy as sa

from pipelines.store.postgres.loading import Database
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from tests.postgres import database, postgres_server
from tests.store.postgres.conftest import library, library_snapshot

TENANTS = ("old", "second")


def night(data: DataFolder, day: int, tenant: str) -> Snapshot:
    """The snapshot of a night, the same in every checkout: the second has another type of an observed column, the third other people."""
    users = [{"id": 1, "email": "a@example.org", "name": f"Name {day}", "roles": ["admin"], "phone": "1"}]
    tasks = [{"id": 10, "title": "t", "publication_id": 2, "assignee_id": 1, "own": 1 if day == 0 else "two"}]
    return library_snapshot(data, library(3, first=min(day, 1) + 1, users=users, tasks=tasks), tenant=tenant, day=day)


def main(archive: Path, nights: int) -> None:
    """Load, dump without comments and commands of psql, and compress."""
    with tempfile.TemporaryDirectory() as folder, postgres_server() as server, database(server) as address:
        data = DataFolder(Path(folder) / "library-data")
        for day in range(nights):
            for tenant in TENANTS:
                Database(address).load(data, night(data, day, tenant))
        url = sa.make_url(address)
        options = ("--inserts", "--no-owner", "--no-privileges", "-h", str(url.query["host"]), "-U", "bookferry")
        dump = subprocess.run(["pg_dump", *options, str(url.database)], check=True, capture_output=True, text=True)
        lines = (line for line in dump.stdout.splitlines() if line.strip() and not line.startswith(("--", "\\")))
        text = "\n".join(lines).replace(folder, "/library")
    archive.write_bytes(lzma.compress(text.encode(), preset=9))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
