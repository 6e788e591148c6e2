"""The bookferry.toml of a measured Bookferry: the local server, with the limit lifted."""

from __future__ import annotations

import os
from pathlib import Path

TENANT = "bench"


def write_configuration(base_url: str, folder: Path) -> Path:
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
        "requests_per_minute = 1000000\n"
        "files = false\n",
        encoding="utf-8",
    )
    return config
