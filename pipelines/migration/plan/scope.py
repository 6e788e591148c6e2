"""Which snapshots, targets and resources a plan can be made for, and what a person should know about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pipelines.errors import ConfigurationError, StopError
from pipelines.humanize import counted
from pipelines.inventory import RESOURCES, nested_of
from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import CONFLICTS, PEOPLE, PlanFacts
from pipelines.migration.model.resource_types import (
    LOCATIONS,
    PUBLICATIONS,
    RESOURCE_TYPES,
    USERS,
    ResourceType,
    Source,
    chosen_resources,
    referenced_resources,
)
from pipelines.settings.settings import Settings
from pipelines.store.encryption import PersonalKey
from pipelines.store.snapshots.snapshots import Snapshot


def check_target(settings: Settings, target: str) -> None:
    """Raise `ConfigurationError` for a tenant that nothing can be moved into."""
    if settings.tenant(target).api != "v3":
        raise ConfigurationError(
            f"'{target}' is a tenant of version 2, which is shut down at the end of 2026: nothing is moved into it. Name a tenant with "
            'api = "v3".'
        )


def check_movable(source: Snapshot) -> None:
    """Raise for a snapshot without all publications of its library. Missing files are listed, and the rest is moved."""
    facts = source.manifest.resources.get(PUBLICATIONS)
    if facts is None:
        raise ConfigurationError(f"{source.name} holds no publications, so there is nothing to move.")
    if not facts.complete:
        raise StopError(
            f"{source.name} does not hold all publications, so a migration from it would leave some behind: {' '.join(facts.problems)} "
            f"Make a complete one first: `bookferry backup {source.manifest.tenant}`."
        )


def has_all_publications(source: Snapshot) -> bool:
    """Whether a snapshot has all publications of its library, whatever else it may lack."""
    facts = source.manifest.resources.get(PUBLICATIONS)
    return facts is not None and facts.complete


def movable_resources(source: Snapshot) -> list[str]:
    """The resources that a snapshot has whole, with those to which they refer."""
    whole = {name for name, facts in source.manifest.resources.items() if facts.complete and name in RESOURCES}
    return [name for name in whole if whole.issuperset(referenced_resources({name} & {*RESOURCE_TYPES}))]


def chosen_other_resources(source: Snapshot, names: Iterable[str]) -> tuple[str, ...]:
    """The other resources that a person names, in the order in which they are written.

    Raises where the snapshot lacks one of them, or one that they refer to.
    """
    try:
        chosen = chosen_resources(names)
    except ValueError as error:
        raise ConfigurationError(f"--resources: {error}.") from None
    nested = nested_of(chosen, source.manifest.resources)
    for resource in (*chosen, *referenced_resources(chosen), *nested):
        facts = source.manifest.resources.get(resource)
        why = "" if resource in (*chosen, *nested) else f", to which {_referring(resource, chosen)} refer"
        if facts is None:
            raise ConfigurationError(f"{source.name} holds no {resource}{why}. {_remedy(source, chosen)}")
        if not facts.complete:
            raise StopError(
                f"{source.name} does not hold all {resource}{why}: {' '.join(facts.problems)} Make a complete one first."
            )
    return chosen


def _remedy(source: Snapshot, chosen: Sequence[str]) -> str:
    """Where records come from that a snapshot does not hold."""
    names = ",".join((PUBLICATIONS, *chosen, *referenced_resources(chosen)))
    if source.manifest.api == "v2":
        return (
            "The documented lists of version 2 do not have them; a backup over version 3 of the same library has "
            f"(`bookferry backup TENANT --resources {names}`)."
        )
    return (
        f"That backup was not asked for them, or could not read them: `bookferry snapshots show {source.name}` says which. To read them: "
        f"`bookferry backup {source.manifest.tenant} --resources {names}`."
    )


def _referring(resource: str, chosen: Iterable[str]) -> str:
    return " and ".join(name for name in chosen if resource in referenced_resources([name]))


def plan_notes(source: Snapshot, facts: PlanFacts, key: PersonalKey | None) -> list[str]:
    """Notes for a person: a partial snapshot, personal data, and what only a person can do. `key`: of personal data."""
    notes = [] if source.manifest.complete else [f"{source.name} is partial: {' '.join(source.manifest.problems)}"]
    if USERS in facts.resources:
        how = (
            f"encrypted with the key {key.fingerprint}"
            if key
            else "unencrypted, because bookferry.toml names no personal_key_env"
        )
        notes.append(
            f"This plan holds personal data: names and addresses of users are in {PEOPLE}, {how}. Keep its folder where only authorised "
            "people see it, and remove it when it is no longer needed."
        )
    if proposed := facts.merges_proposed:
        notes.append(
            f"The target has {counted(proposed, 'record')} more than once, under the same name. {CONFLICTS} has a line for each: write "
            "merge there, and the next plan merges them. No undo can split merged records."
        )
    if partial := facts.first_day_dates:
        notes.append(
            f"The date of {counted(partial, 'publication')} is only a year or a month. It is sent as its first day, such as 2021-01-01 for "
            "2021 (--first-days), unless the target has a day of that year or month already. issues.tsv has each."
        )
    if missing := facts.counts.get(LOCATIONS, {}).get(Action.QUARANTINED):
        notes.append(
            f"A person must create {counted(missing, 'location')} of hard copies in the target, with the same name: the service lets no "
            "program create any. issues.tsv lists them. Copies that stand there wait for the next plan."
        )
    return notes


def unproved_notes(types: Mapping[str, ResourceType], target: str) -> list[str]:
    """Notes on the resources of which nothing describes what the target takes."""
    names = [
        resource
        for resource, resource_type in types.items()
        if resource_type.known_from == Source.RECORDS and resource_type.created and resource_type.fields
    ]
    if not names:
        return []
    note = (
        f"No description says which fields of {', '.join(names)} '{target}' takes: they are known from records only, so it is not proved "
        "that it keeps all of them. Run `bookferry migrate verify` after the apply: it lists what was not kept."
    )
    return [note]
