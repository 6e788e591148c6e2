"""The scopes that each job needs, and what a sign-in allows with the scopes that it has (service.md#scopes)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

SCOPES = (
    "library:read",
    "library:write",
    "assets:read",
    "assets:write",
    "users:read",
    "users:write",
    "tasks:read",
    "tasks:write",
)
"""All scopes of v3, in the documented order."""


@dataclass(frozen=True)
class Job:
    """A job that Bookferry does with a tenant, and the scopes for it."""

    name: str
    needs: Mapping[str, str]
    """Scope → its purpose; without the scope, the job does not work."""
    uses: Mapping[str, str]
    """Scope → its purpose; without the scope, the job leaves this part out."""

    @property
    def scopes(self) -> tuple[str, ...]:
        """All of them, in the order of `SCOPES`."""
        return tuple(scope for scope in SCOPES if scope in self.needs or scope in self.uses)


BACKUP = Job(
    "backup",
    {"library:read": "reads publications, copies, collections, authorities"},
    {"assets:read": "reads files and covers", "users:read": "reads users", "tasks:read": "reads tasks"},
)
MIGRATION = Job(
    "migration",
    {"library:read": "looks up what is there already", "library:write": "creates and changes records"},
    {
        "assets:read": "checks the files that were uploaded",
        "assets:write": "uploads files",
        "users:read": "looks up users",
        "users:write": "creates users, only when you ask for it",
        "tasks:read": "looks up tasks",
        "tasks:write": "creates tasks",
    },
)
JOBS = {job.name: job for job in (BACKUP, MIGRATION)}


@dataclass(frozen=True)
class Ability:
    """What the scopes of a token allow of one job."""

    job: Job
    lacks: tuple[str, ...]

    @property
    def works(self) -> bool:
        """Whether the job works, possibly without some of its parts."""
        return not set(self.lacks) & set(self.job.needs)

    @property
    def sentence(self) -> str:
        """The ability as text for a person."""
        if not self.lacks:
            return "everything"
        if not self.works:
            return f"does not work: {', '.join(scope for scope in self.lacks if scope in self.job.needs)} is missing"
        return "works, but not what " + "; ".join(f"{scope} is for ({self.job.uses[scope]})" for scope in self.lacks)


def abilities(scopes: Iterable[str]) -> list[Ability]:
    """What these scopes allow, job by job."""
    granted = set(scopes)
    return [Ability(job, tuple(scope for scope in job.scopes if scope not in granted)) for job in JOBS.values()]


def jobs_document(scopes: Iterable[str]) -> dict[str, Any]:
    """The same as JSON members."""
    return {
        ability.job.name: {"works": ability.works, "complete": not ability.lacks, "lacks": list(ability.lacks)}
        for ability in abilities(scopes)
    }
