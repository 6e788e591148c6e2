"""Starts the sandbox, the local stand-in of the service, as a process of its own: for a demonstration or for a restore drill.

Nothing is imported from the sandbox: the client and the sandbox must not share one misreading of the service's API.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
import msgspec

from pipelines.errors import BookferryError
from pipelines.python_process import python_command
from pipelines.scopes import SCOPES
from pipelines.service.clock import SystemClock
from pipelines.service.sign_in.stored_sign_in import Grant, StoredSignIn
from pipelines.service.sign_in.token_store import open_tokens
from pipelines.settings.settings import Settings

CLIENT_ID = "stand-in"
"""The OAuth client of a tenant in a sandbox; it has no secret."""


@contextmanager
def sandbox_process(options: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Runs the sandbox on a free port of this machine while the block runs; yields its ready line.

    It ends with this process, even after a kill.
    """
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            python_command("-m", "sandbox", *options, "--stop-at-eof"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,  # a Ctrl-C must reach this process only
        ) as process,
    ):
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                errors.seek(0)
                raise BookferryError(
                    f"The sandbox did not start (exit {process.wait()}): {errors.read().strip()[-500:]}"
                )
            yield msgspec.json.decode(line)
        finally:
            process.terminate()


def create_locations(ready: Mapping[str, Any], library: str, locations: Iterable[Mapping[str, Any]]) -> int:
    """Creates locations in a library of a sandbox, as a person would: the API has no such endpoint (service.md#other-resources).

    Returns their number.
    """
    created = 0
    with httpx.Client(timeout=60, trust_env=False) as client:
        for location in locations:
            client.post(f"{ready['control']}/locations", json={"tenant": library, **location}).raise_for_status()
            created += 1
    return created


def store_sign_in(settings: Settings, tenant: str, ready: dict[str, Any], library: str) -> None:
    """Stores a sign-in of a tenant to a library of a sandbox, with every scope: the sandbox issues tokens without a browser."""
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
        obtained=clock.now().timestamp(),
        signed_in_at=clock.now().timestamp(),
    )
    connection = StoredSignIn(base_url=settings.tenant(tenant).base_url, tenant=tenant, grant=grant)
    with open_tokens(settings, tenant).leased(clock) as leased:
        leased.write(connection)
