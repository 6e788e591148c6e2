"""A sandbox to examine, and data folders for examinations in this process or by the command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipelines.doctor.examination import Examination, examine
from pipelines.doctor.findings import CheckResult
from pipelines.doctor.look import Environment, Look
from pipelines.service.clock import SystemClock
from pipelines.settings.config_file import load_settings
from tests.cli.command import Installation
from tests.sandbox.process import SandboxProcess


class ShiftedClock(SystemClock):
    """The machine's clock with a different time of day."""

    def __init__(self, shift: timedelta) -> None:
        super().__init__()
        self._shift = shift

    def now(self) -> datetime:
        """The time of day on a machine with a wrong clock."""
        return super().now() + self._shift

    @classmethod
    def at(cls, moment: datetime) -> ShiftedClock:
        """A clock that starts at `moment`."""
        return cls(moment - datetime.now(UTC))


@dataclass(frozen=True)
class Patient(Installation):
    """A home that can be examined without a process of its own."""

    around: Environment = field(default_factory=Environment)

    def examine(self) -> Examination:
        """The results of the examination."""
        with Look(load_settings(self.folder / "bookferry.toml"), self.tenant, self.around) as look:
            return examine(look)

    def find(self, name: str) -> CheckResult:
        """The result of that name."""
        (result,) = [finding for finding in self.examine().findings if finding.name == name]
        return result

    def amid(self, **surroundings: object) -> Patient:
        """The same, with other surroundings."""
        return replace(self, around=replace(self.around, **surroundings))  # type: ignore[arg-type]


@pytest.fixture
def patient_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Patient]:
    """Makes a home at any address, signed in with the sandbox's account."""
    monkeypatch.setenv("TEST_USER", "backup@library.example")
    monkeypatch.setenv("TEST_PASSWORD", "sandbox-password")

    def make(sandbox: SandboxProcess, base_url: str | None = None, tenant: str = "library") -> Patient:
        patient = Patient(tmp_path, sandbox, tenant)
        patient.configure(base_url=base_url or sandbox.base_url(tenant), requests_per_minute=60)
        return patient

    return make


@pytest.fixture
def patient(sandbox: SandboxProcess, patient_of: Callable[..., Patient]) -> Patient:
    """A v2 tenant of three pages, in good health."""
    return patient_of(sandbox)
