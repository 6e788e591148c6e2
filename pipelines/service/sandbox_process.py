"""Starts the sandbox, the local stand-in of the service, as a process of its own: to show something, or to drill a restore.

Nothing of it is imported: one misreading of the service's document must not sit on both sides.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from pipelines.errors import BookferryError
from pipelines.service.clock import SystemClock
from pipelines.service.sign_in.configured_store import open_tokens
from pipelines.service.sign_in.stored_sign_in import ClockReading, Grant, StoredSignIn
from pipelines.settings.settings import Settings
from pipelines.settings.tenant import SCOPES

CLIENT_ID = "stand-in"
"""The client of the tenants that a sandbox stands in for: it has no secret."""


@contextmanager
def sandbox_process(options: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The sandbox on a free port of this machine while the block runs; yields its ready line. It ends with us, even when we are killed."""
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(
            [sys.executable, "-m", "sandbox", *options, "--stop-at-eof"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,  # a Ctrl-C is for us to hear, not for both
        ) as process,
    ):
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                said.seek(0)
                raise BookferryError(f"The sandbox did not start (exit {process.wait()}): {said.read().strip()[-500:]}")
            yield msgspec.json.decode(line)
        finally:
            process.terminate()


def create_locations(ready: Mapping[str, Any], library: str, locations: Iterable[Mapping[str, Any]]) -> int:
    """Make locations in a library of a sandbox, as a person does: the API lets no program (service-api.md: "no create"). How many."""
    made = 0
    with httpx.Client(timeout=60, trust_env=False) as client:
        for one in locations:
            client.post(f"{ready['control']}/locations", json={"tenant": library, **one}).raise_for_status()
            made += 1
    return made


def store_sign_in(settings: Settings, tenant: str, ready: dict[str, Any], library: str) -> None:
    """Keep a sign-in of a tenant to a library of a sandbox, with every scope: the sandbox gives it without a browser."""
    clock = SystemClock()
    answer = httpx.post(
        f"{ready['control']}/tokens", json={"tenant": library, "scopes": list(SCOPES)}, timeout=60, trust_env=False
    )
    grant = Grant(
        client_id=CLIENT_ID,
        access_token=str(answer.raise_for_status().json()["access_token"]),
        refresh_token=None,
        scopes=tuple(SCOPES),
        lifetime=3600,
        obtained=ClockReading.now(clock),
        signed_in_at=clock.now().timestamp(),
    )
    connection = StoredSignIn(base_url=settings.tenant(tenant).base_url, tenant=tenant, grant=grant)
    with open_tokens(settings, tenant).locked(clock) as locked:
        locked.write(connection)
