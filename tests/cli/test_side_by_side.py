"""Many libraries begin a data folder at once: each has its own budget, and none waits for another (I1)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.command import CONFIG, PATIENCE, Installation
from tests.sandbox.process import SandboxProcess

LIMIT = 60
"""Requests a minute: what the service grants, and what each tenant of the configuration may send."""

NAMES = ("quick", "waiting", "stuck")


@pytest.fixture
def installations(tmp_path: Path) -> Iterator[dict[str, Installation]]:
    """Three libraries, each on a service of its own that refuses what exceeds its limit; one configuration, one data folder."""
    with ExitStack() as services:
        found = {}
        text = ""
        for name in NAMES:
            sandbox = services.enter_context(
                SandboxProcess(f"--tenant={name}=real:120", "--requests-per-minute", str(LIMIT))
            )
            found[name] = Installation(tmp_path, sandbox, name)
            table = CONFIG.format(tenant=name, base_url=sandbox.base_url(name), requests_per_minute=LIMIT)
            text += table.partition("\n")[2] if text else table
        (tmp_path / "bookferry.toml").write_text(text)
        yield found


@pytest.mark.long
def test_three_libraries_at_once(installations: dict[str, Installation]) -> None:
    """A service that hangs and a budget that is used up delay only their own library."""
    quick, waiting, stuck = (installations[name] for name in NAMES)
    stuck.sandbox.fault("hang", "stuck", path=r"page=2(&|$)", seconds=100_000, times=99)
    with waiting.no_budget() as wait_for_look:
        processes = {
            name: installation.start("backup", name, "--json", hurried=name == "waiting")
            for name, installation in installations.items()
        }
        wait_for_look()
        while stuck.sandbox.counts("stuck")["requests"] < 2:
            time.sleep(0.2)
        out, messages = processes["quick"].communicate(timeout=PATIENCE)
        assert (processes["quick"].returncode, json.loads(out)["complete"]) == (0, True), messages
        assert waiting.sandbox.counts("waiting")["requests"] == 0
        assert (processes["waiting"].poll(), processes["stuck"].poll()) == (None, None)
    out, messages = processes["waiting"].communicate(timeout=PATIENCE)
    assert (processes["waiting"].returncode, json.loads(out)["counts"]) == (0, {"publications": 120}), messages
    assert processes["stuck"].poll() is None
    processes["stuck"].terminate()
    processes["stuck"].communicate(timeout=PATIENCE)
    assert processes["stuck"].returncode == 143
    for name, installation in installations.items():
        counts = installation.sandbox.counts(name)
        assert counts["throttled"] == 0, name
        assert counts["largest_window"] <= LIMIT, name
    listed = quick.run("snapshots", "list", "--json").document["snapshots"]
    assert sorted(one["tenant"] for one in listed) == ["quick", "waiting"]
