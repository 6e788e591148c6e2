"""The bookferry.toml of a measured Bookferry: the local server, with the limit lifted unless another one is given."""

from __future__ import annotations

import os
from pathlib import Path

TENANT = "bench"

NO_LIMIT = 1_000_000
"""Requests a minute: more than any machine sends."""


def write_configuration(base_url: str, folder: Path, requests_per_minute: int = NO_LIMIT) -> Path:
    """Write bookferry.toml into `folder`, and its credentials into this process's environment."""
    os.environ |= {"BENCH_USER": "bench", "BENCH_PASSWORD": "bench"}
    config = folder / "bookferry.toml"
    config.write_text(
        'data = "library-data"\n\n'
        f"[tenants.{TENANT}]\n"
        f'base_url = "{base_url}"\n'
        'api = "v2"\n'
        'username_env = "BENCH_USER"\n'
        'password_env = "BENCH_PASSWORD"\n'
        f"requests_per_minute = {requests_per_minute}\n"
        "files = false\n",
        encoding="utf-8",
    )
    return config
