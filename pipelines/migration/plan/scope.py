"""Which resources beside the publications a plan moves, where the source has them, and what a person should know of that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from pipelines.backup.read import Progress
from pipelines.errors import ConfigurationError, StopError
from pipelines.humanize import counted
from pipelines.migration.model.plan import CREATE, PATCH, PEOPLE, QUARANTINED, Plan
from pipelines.migration.model.resource_types import PUBLICATIONS, USERS, chosen_resources, referenced_resources
from pipelines.migration.model.target_reading import ResourceReading, local_table
from pipelines.migration.plan.match_store import TargetListing
from pipelines.migration.plan.publications import Totals
from pipelines.records.identifiers.kinds import Kinds
from pipelines.records.tables.registry import PERSONAL
from pipelines.service.client import LibraryClient
from pipelines.service.clock import Clock
from pipelines.settings.settings import Settings
from pipelines.store.encryption import PersonalKey
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot


def chosen_others(source: Snapshot, names: Iterable[str]) -> tuple[str, ...]:
    """The resources that a person names, in the order in which they are written; the snapshot must hold them, and what they refer to."""
    try:
        chosen = chosen_resources(names)
    except ValueError as error:
        raise ConfigurationError(f"--resources: {error}.") from None
    for resource in (*chosen, *referenced_resources(chosen)):
        facts = source.manifest.resources.get(resource)
        why = "" if resource in chosen else f", to which {_referring(resource, chosen)} refer"
        if facts is None:
            raise ConfigurationError(
                f"{source.name} holds no {resource}{why}. Version 2 of the API lists none; a backup over version 3 has them "
                f"(`bookferry backup TENANT --resources publications,{','.join(chosen)}`)."
            )
        if not facts.complete:
            raise StopError(
                f"{source.name} does not hold all {resource}{why}: {' '.join(facts.problems)} Make a complete one first."
            )
    return chosen


def _referring(resource: str, chosen: Iterable[str]) -> str:
    return " and ".join(one for one in chosen if resource in referenced_resources([one]))


def listed_in(data: DataFolder, source: Snapshot, resource: str, folder: Path) -> TargetListing:
    """A resource of a snapshot, on this machine; what is encrypted stays so."""
    name = f"raw_{resource}"
    fingerprint = source.manifest.tables[name].key
    return TargetListing(
        local_table(data, source, name, folder),
        data.keys.to_read(fingerprint, f"What {source.name} holds of {resource}"),
    )


class TargetReader:
    """Reads the resources of a target, each once and proved like a backup; under its lease."""

    def __init__(
        self,
        data: DataFolder,
        settings: Settings,
        kinds: Kinds,
        clock: Clock,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._data = data
        self._settings = settings
        self._kinds = kinds
        self._clock = clock
        self._on_progress = on_progress

    def read(self, target: str, client: LibraryClient, folder: Path, run: str, resource: str = PUBLICATIONS) -> Path:
        """The raw table of a resource, in `folder`. `run`: see `ResourceReading`."""
        reading = ResourceReading(self._data, self._settings.tenant(target), target, run, self._clock)
        return reading.read(client, folder, self._kinds, self._on_progress, resource)

    def others(
        self, target: str, client: LibraryClient, folder: Path, run: str, resources: Iterable[str]
    ) -> dict[str, TargetListing]:
        """The same of several others, by resource; what is of people is encrypted where there is a key."""
        return {
            one: TargetListing(
                self.read(target, client, folder, run, one), self._data.keys.to_write() if one in PERSONAL else None
            )
            for one in resources
            if one != PUBLICATIONS
        }


def written_others(plan: Plan) -> list[str]:
    """The resources beside the publications in which a plan writes anything."""
    counts = plan.facts.counts
    return [
        one
        for one in plan.facts.resources
        if one != PUBLICATIONS and counts[one].get(CREATE, 0) + counts[one].get(PATCH, 0)
    ]


def notes_on(found: Mapping[str, Totals], key: PersonalKey | None) -> list[str]:
    """What a person should know of the resources that are moved: personal data, mails, and what only a person can do."""
    notes = []
    if USERS in found:
        how = (
            f"encrypted with the key {key.fingerprint}"
            if key
            else "unencrypted, for bookferry.toml names no personal_key_env"
        )
        notes.append(
            f"This plan holds personal data: names and addresses of users are in {PEOPLE}, {how}. Keep its folder where only those see it "
            "who may, and remove it when it has served."
        )
    missing = found["locations"].actions[QUARANTINED] if "locations" in found else 0
    if missing:
        notes.append(
            f"{counted(missing, 'location')} of hard copies must be made in the target by a person, with the same name: the service lets "
            "no program create any. issues.tsv lists them, and copies that stand there wait for the next plan."
        )
    return notes
