"""Many libraries on one data folder: each has its own budget, and none waits for another (I1; "many tenants back up side by side")."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.command import CONFIG, PATIENCE, Home
from tests.sandbox.process import SandboxProcess

LIMIT = 60
"""Requests a minute: what the service grants, and what each tenant of the configuration may send."""

NAMES = ("quick", "waiting", "stuck")


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[dict[str, Home]]:
    """Three libraries, each on a service of its own that refuses what exceeds its limit; one configuration, one data folder."""
    with ExitStack() as services:
        made = {}
        text = ""
        for name in NAMES:
            sandbox = services.enter_context(
                SandboxProcess(f"--tenant={name}=real:120", "--requests-per-minute", str(LIMIT))
            )
            made[name] = Home(tmp_path, sandbox, name)
            table = CONFIG.format(tenant=name, base_url=sandbox.base_url(name), requests_per_minute=LIMIT)
            text += table.partition("\n")[2] if text else table
        (tmp_path / "bookferry.toml").write_text(text)
        yield made


def test_three_libraries_at_once(homes: dict[str, Home]) -> None:
    """One whose service hangs and one whose budget is used up hold nobody up but themselves."""
    quick, waiting, stuck = (homes[name] for name in NAMES)
    stuck.sandbox.fault("hang", "stuck", path=r"page=2(&|$)", seconds=100_000, times=99)
    with waiting.no_budget() as somebody_waits:
        processes = {
            name: home.start("backup", name, "--json", hurried=name == "waiting") for name, home in homes.items()
        }
        somebody_waits()
        while stuck.sandbox.counts("stuck")["requests"] < 2:
            time.sleep(0.2)
        out, said = processes["quick"].communicate(timeout=PATIENCE)
        assert (processes["quick"].returncode, json.loads(out)["complete"]) == (0, True), said
        assert waiting.sandbox.counts("waiting")["requests"] == 0
        assert (processes["waiting"].poll(), processes["stuck"].poll()) == (None, None)
    out, said = processes["waiting"].communicate(timeout=PATIENCE)
    assert (processes["waiting"].returncode, json.loads(out)["counts"]) == (0, {"publications": 120}), said
    assert processes["stuck"].poll() is None
    processes["stuck"].terminate()
    processes["stuck"].communicate(timeout=PATIENCE)
    assert processes["stuck"].returncode == 1
    for name, home in homes.items():
        counts = home.sandbox.counts(name)
        assert counts["throttled"] == 0, name
        assert counts["largest_window"] <= LIMIT, name
    listed = quick.run("snapshots", "list", "--json").document["snapshots"]
    assert sorted(one["tenant"] for one in listed) == ["quick", "waiting"]
