"""Builds a plan in its folder: reads the target, compares it with the snapshot, and writes the rows, the facts and the conflicts."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from http import HTTPStatus
from pathlib import Path

from msgspec.structs import replace

from pipelines.errors import BookferryError
from pipelines.inventory import RESOURCES, nested_address, nested_resource, parent_of, record_path
from pipelines.migration.mapping.codes import differing_codes
from pipelines.migration.mapping.learned_types import TypeLearner, additional_names
from pipelines.migration.mapping.mapping_file import MappingFile
from pipelines.migration.model.actions import Decision
from pipelines.migration.model.field_mapping import OPEN
from pipelines.migration.model.journal import RECORD_WRITES, Journal
from pipelines.migration.model.journal_entries import WriteKind, WriteState
from pipelines.migration.model.plan import (
    FACTS,
    PEOPLE,
    ROWS,
    TARGET,
    End,
    FileCounts,
    Plan,
    PlanFacts,
    Twin,
    Unanswered,
)
from pipelines.migration.model.plan_folders import all_plans, plan_name, plans_folder
from pipelines.migration.model.plan_table import PLAN
from pipelines.migration.model.publication_type import publication_type
from pipelines.migration.model.resource_types import (
    PUBLICATIONS,
    RESOURCE_TYPES,
    USERS,
    ResourceType,
    referenced_resources,
)
from pipelines.migration.model.target_reading import RecordListing, file_table, snapshot_listing
from pipelines.migration.plan.conflicts import Decisions, RecordDecision, newest_table, read_decisions, write_conflicts
from pipelines.migration.plan.inputs import PlanInputs
from pipelines.migration.plan.resources import plan_all
from pipelines.migration.plan.rows import requests_to_read
from pipelines.migration.plan.scope import plan_notes, unproved_notes
from pipelines.migration.plan.twins import find_twins
from pipelines.migration.session import MigrationSession
from pipelines.records.identifiers.verdicts import GOOD, VERDICTS
from pipelines.records.left_out import LeftOut
from pipelines.records.shapes.field_names import resource_named, singular, stem_of
from pipelines.records.tables.publication_fields import AUTHORS
from pipelines.records.tables.registry import field_of_entries, leading_key, named_by
from pipelines.service.client import LibraryClient
from pipelines.service.probe import Probe
from pipelines.service.self_description import ask_description
from pipelines.settings.addresses import library_key
from pipelines.settings.settings import Settings
from pipelines.shapes.model import Description, FieldSchema, PayloadSchema, ResourceSchema
from pipelines.shapes.unread_lists import MEMBERS
from pipelines.store.durable import sha256_of
from pipelines.store.parquet import table_writer
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from pipelines.version import VERSION

API = "v3"
"""The version of every target."""

APPLIED_ONCE = frozenset({Decision.CREATE, Decision.SOURCE, Decision.MERGE})
"""Decisions that create, overwrite or merge: once they are applied, they are not applied again."""


@dataclass(frozen=True)
class PlanRequest:
    """What a person asks for."""

    source: Snapshot
    target: str
    """The tenant."""
    resources: tuple[str, ...]
    """The other resources that are moved, in the order in which they are written."""
    now: datetime
    overwrite: bool = False
    """Where both sides have different values, the source's value counts."""
    first_days: bool = False
    """A date that is only a year or a month is sent as its first day."""
    sends_invalid: bool = False
    """Identifiers that break the rules of their type are sent, too."""
    restores: bool = False
    """A backup is put back: numbers within texts are sent as they stand, although they may be those of records."""
    mapping: MappingFile | None = None
    """How records are moved that the service does not document; as learned, where there is none."""


class PlanBuilder:
    """Builds one plan. First it reads the target, then it compares, without a request."""

    def __init__(self, session: MigrationSession, request: PlanRequest, folder: Path) -> None:
        self._session = session
        self._request = request
        self._folder = folder
        self._source: dict[str, RecordListing] = {}
        self._target: dict[str, RecordListing] = {}
        self.learners: dict[str, TypeLearner] = {}
        self._assumed = {PUBLICATIONS: publication_type(session.kinds), **RESOURCE_TYPES}
        self._types: dict[str, ResourceType] = {}
        self._unanswered: dict[str, str] = {}
        """Resource that is not planned → why not, by the mapping."""
        self._description: Description | None = None

    def read_target(self, client: LibraryClient, *, to_move: bool = True) -> None:
        """Read the resources of the target that are moved or referred to, and learn how records are moved.

        `to_move`: else only those from which that is learned.
        """
        request, session = self._request, self._session
        chosen, mapping = (PUBLICATIONS, *request.resources), request.mapping
        by_mapping = (mapping.referred_by(chosen) & self._readable()) - {*chosen} if mapping else ()
        for resource in dict.fromkeys((*chosen, *referenced_resources(request.resources), *by_mapping)):
            self._source[resource] = snapshot_listing(session.source_data, request.source, resource, self._folder)
        if self._source[PUBLICATIONS].rows:
            self._described(client)  # it says what a new publication must have, and where an upload is signed
        for resource in self._source:
            if to_move or self._is_learned(resource):
                self._target[resource] = session.read(request.target, client, self._folder, "plan", resource)
        puts_back = request.restores or self._same_library
        self._learn_types(client, asks_all=not (to_move and puts_back))

    @property
    def _same_library(self) -> bool:
        source, target = (
            self._request.source.manifest.base_url,
            self._session.settings.tenant(self._request.target).base_url,
        )
        return library_key(source) == library_key(target)

    @property
    def operations(self) -> Collection[str]:
        """The operations that the target describes, as far as a plan needed its description."""
        return self._description.operations if self._description else ()

    def _described(self, client: LibraryClient) -> Description:
        """The target's own description, which is asked for once, and only where a plan needs it."""
        if self._description is None:
            probe = Probe(client, self._session.clock)
            self._description = ask_description(probe, API)
        return self._description

    def _learn_types(self, client: LibraryClient, *, asks_all: bool) -> None:
        """Learn how records are moved: from the target's description, and from the records of both sides. `asks_all`: as `TypeLearner`."""
        library, unread, mapping = cache(self._library), self._unread(), self._request.mapping
        for resource, listing in self._source.items():
            if self._is_learned(resource):
                lists = self._target[resource].lists | listing.lists
                reads = self._target[resource].lists.keys()
                schema, posted = _schema_of(self._described(client), resource, lists, reads)
                self.learners[resource] = TypeLearner(
                    self._assumed[resource],
                    listing,
                    self._target[resource],
                    schema,
                    posted=posted,
                    same_service=self._request.source.manifest.api == API,
                    asks_all=asks_all,
                    read=self._source,
                    library=library,
                    unread=unread,
                )
        follow = mapping.follow if mapping else without_questions
        types = {resource: follow(learner.type) for resource, learner in self.learners.items()}
        if PUBLICATIONS in types:
            types[PUBLICATIONS] = publication_type(self._session.kinds, learned=types[PUBLICATIONS])
        texts = {
            (resource, path): known
            for resource, learner in self.learners.items()
            for path, known in learner.texts().items()
        }
        for resource, codes in differing_codes(texts, types, self._source, self._target).items():
            self.learners[resource].ask(codes)
        self._types = {
            resource: follow(learner.asked if mapping else learner.type) for resource, learner in self.learners.items()
        }
        if mapping:
            asked = (PUBLICATIONS, *self._request.resources)
            reasons = {name: mapping.unanswered(name) for name in asked if self._source[name].rows}
            self._unanswered = {name: reason for name, reason in reasons.items() if reason}

    def _is_learned(self, resource: str) -> bool:
        """Whether it has to be learned how records are moved; publications: only where something about them is not as documented.

        A backup counts the fields that nobody documents: of a source without any, no record is read here.
        """
        counted, assumed = self._request.source.manifest.residue.get(resource), self._assumed[resource]
        has_further = counted is None or bool(additional_names(counted, assumed))
        listing = self._source[resource]
        described = self._description.resources.get(resource) if self._description else None
        mapped = self._request.mapping.resources.get(resource) if self._request.mapping else None
        has_further |= bool(listing.lists or (described and described.presign) or (mapped and mapped.requests))
        return assumed.sends_unproved or (has_further and listing.rows > 0)

    def _payload(self, resource: str) -> PayloadSchema:
        """What the target's description says of a new record, as far as it was asked for."""
        schema = self._description.resources.get(resource) if self._description else None
        return (schema.create if schema else None) or PayloadSchema()

    def _library(self) -> dict[str, RecordListing]:
        """All records of the source, without those that are encrypted with a key that is not at hand."""
        data, snapshot = self._session.source_data, self._request.source
        others = self._readable() - self._source.keys()
        return self._source | {name: snapshot_listing(data, snapshot, name, self._folder) for name in others}

    def _readable(self) -> set[str]:
        """The resources whose records the snapshot has, and none of them encrypted with a key that is not at hand."""
        keys, manifest = self._session.source_data.keys, self._request.source.manifest
        locked = {
            name for name in manifest.resources if manifest.tables[f"raw_{name}"].key not in {"", *keys.fingerprints}
        }
        locked |= {parent_of(name) or name for name in locked}
        return {name for name in manifest.resources.keys() - locked if not parent_of(name)}

    def _unread(self) -> list[str]:
        """The resources of the source whose ids are not known. One that the service does not have has none."""
        readable, refused = self._readable() | self._source.keys(), self._request.source.manifest.unreadable
        absent = {name for name, refusal in refused.items() if refusal.status == HTTPStatus.NOT_FOUND}
        return [name for name in RESOURCES if name not in readable | absent]

    def build(self, journal: Journal) -> Plan:
        """Write the rows and the conflicts; returns the plan, which is not sealed yet."""
        request, session, folder = self._request, self._session, self._folder
        tenant, manifest = session.settings.tenant(request.target), request.source.manifest
        decisions = earlier_decisions(session.data, journal, manifest.base_url, tenant.base_url)
        publications = publication_type(
            session.kinds,
            VERDICTS if request.sends_invalid else GOOD,
            first_day=request.first_days,
            payload=self._payload(PUBLICATIONS),
            learned=self._types.get(PUBLICATIONS),
        )
        inputs = PlanInputs(
            folder=folder,
            listed={resource: (listing, self._target[resource]) for resource, listing in self._source.items()},
            types={**self._types, PUBLICATIONS: publications},
            resources=(PUBLICATIONS, *(name for name in request.resources if name not in self._unanswered)),
            journal=journal,
            files=file_table(session.source_data, request.source, folder),
            decisions=decisions,
            earlier=self._earlier_plans(),
            same_library=self._same_library,
            overwrite=request.overwrite,
            key=session.data.keys.to_write(),
        )
        facts = plan_facts(request, session.settings, inputs)
        with table_writer(folder / ROWS, PLAN) as writer:
            plan_all(writer, inputs, facts)
        if facts.requests:
            facts.requests += requests_to_read(facts, tenant.nested)
        facts.left_out = {
            name: read.records
            for name, read in manifest.resources.items()
            if read.records and name not in facts.resources and not parent_of(name)
        }
        facts.rows_sha256 = sha256_of(folder / ROWS)
        if USERS in facts.resources:
            facts.people_sha256 = sha256_of(folder / PEOPLE)
            facts.people_key = inputs.key.fingerprint if inputs.key is not None else ""
        facts.notes = plan_notes(request.source, facts, inputs.key)
        for end in (facts.source, facts.target):
            library = session.settings.tenants.get(end.tenant)
            end.record_url = (library and library.record_url) or ""
        facts.description = self._description
        if self._description and not self._description.problem and facts.requests:
            facts.requests += 1  # the apply asks for it again
        if request.mapping is not None:
            facts.mapping_sha256 = request.mapping.sha256
            facts.unanswered = {
                name: Unanswered(facts.left_out.pop(name, 0), why) for name, why in self._unanswered.items()
            }
            facts.notes += [
                note for learner in self.learners.values() for note in request.mapping.doubtful_answers(learner)
            ]
        facts.types = self._types
        facts.notes += unproved_notes(
            {name: learned for name, learned in self._types.items() if name in facts.resources}, request.target
        )
        facts.twins = self._twins(inputs)
        facts.notes += [str(twin) for twin in facts.twins]
        for path in folder.glob("*.parquet"):
            if path.name not in (ROWS, PEOPLE):
                path.unlink()
        plan = Plan(folder, facts, session.data.keys)
        write_conflicts(plan, decisions)
        return plan

    @cached_property
    def _plans(self) -> list[Plan]:
        """All earlier plans, oldest first."""
        return all_plans(self._session.data)

    def _earlier_plans(self) -> dict[str, Plan]:
        """Resource → the newest whole plan of its records between these libraries; none within one library, whose ids are the same."""
        request, target = self._request, self._session.settings.tenant(self._request.target)
        pair, newest = (request.source.manifest.base_url, target.base_url), dict[str, Plan]()
        for plan in () if self._same_library or request.restores else reversed(self._plans):
            resources = {*plan.facts.resources} - newest.keys()
            if resources and (plan.facts.source.base_url, plan.facts.target.base_url) == pair and _is_whole(plan):
                newest |= dict.fromkeys(resources, plan)
        return newest

    def _twins(self, inputs: PlanInputs) -> list[Twin]:
        """What the target has twice because a request of an earlier plan took effect late."""
        plans = {plan.name: plan for plan in self._plans}
        return [*find_twins(inputs.journal, inputs.folder / TARGET, inputs.resources, plans)]


def _is_whole(plan: Plan) -> bool:
    """Whether the rows of a plan are there as they were sealed."""
    try:
        plan.check_unaltered()
    except BookferryError:
        return False
    return True


def plan_facts(request: PlanRequest, settings: Settings, inputs: PlanInputs) -> PlanFacts:
    """The facts of a plan before its rows are made, which are counted in them."""
    tenant, manifest, now = settings.tenant(request.target), request.source.manifest, request.now
    _library, per_minute = settings.budget_of(request.target)
    return PlanFacts(
        plan=inputs.folder.name,
        tool=f"bookferry {VERSION}",
        created_at=now.isoformat(timespec="milliseconds"),
        source=End(
            tenant=manifest.tenant,
            base_url=manifest.base_url,
            api=manifest.api,
            snapshot=manifest.snapshot,
            records={},
        ),
        target=End(
            tenant=request.target,
            base_url=tenant.base_url,
            api=tenant.api,
            snapshot=f"{now:%Y%m%dT%H%M%SZ}",
            records={},
        ),
        same_library=inputs.same_library,
        overwrite=inputs.overwrite,
        first_days=request.first_days,
        sends_invalid=request.sends_invalid,
        resources=[],
        counts={},
        matched_by=Counter(),
        files=FileCounts(),
        requests=0,
        requests_per_minute=per_minute,
        work=Counter(dict.fromkeys(("create", "patch", "links", "merge", "files", "covers"), 0)),
        not_read=[
            address
            for address in manifest.not_read
            if address != MEMBERS or not _has_publications(inputs.types.get("collections"))
        ],
        decisions=len(inputs.decisions),
        rows_sha256="",
    )


def _has_publications(collections: ResourceType | None) -> bool:
    """Whether the records of collections show which publications they have, whatever the name of that field."""
    fields = collections.fields.values() if collections else ()
    return any(field.many and PUBLICATIONS in field.resources for field in fields)


def _schema_of(
    described: Description, resource: str, lists: dict[str, str], reads: Collection[str]
) -> tuple[ResourceSchema, dict[str, str]]:
    """What the target describes of a resource, and how the entries of lists at addresses of their own are added.

    Such a list is no field that records take. `lists`: those that are read of either library, each with the field that stands for it;
    `reads`: those that are read of the target, without which nothing is added to one.
    """
    schema, posted = described.resources.get(resource, ResourceSchema()), dict[str, str]()
    of_records = f"/{record_path(resource, '')}{{}}/"
    lists_below = [path.removeprefix(of_records) for path in described.lists if path.startswith(of_records)]
    fields = {f"{resource}/{below}": f"{singular(below)}_ids" for below in lists_below if resource_named(below)} | lists
    for name, key in fields.items():
        path = nested_address(name).replace(":id", "{}")
        if key in schema.record or not (path in described.lists or name in reads):
            continue
        body = described.additions.get(path, None if described.operations else PayloadSchema())
        nested, taken = nested_resource(name), body.writable if body else {}
        sent, is_unclear = leading_key(nested, taken), False
        if named_by(nested) is None:
            sent = next(
                (member for member in taken if member != "id" and field_of_entries(nested, member) == key), sent
            )
            # Its own ids are known of entries {id: 504, user_id: 7}, and the second is what is added
            added = {member for member in taken if resource_named(stem_of(member)) not in (None, resource)}
            is_unclear = key == field_of_entries(nested, "id") and not added.isdisjoint(described.lists.get(path, ()))
        field = FieldSchema(types=["array"], read_only=body is None or name not in reads or is_unclear)
        schema = replace(schema, record={key: field} | schema.record)
        if not field.read_only:
            is_plain = sent in taken and not taken[sent].members  # no line says what an object has
            posted[key] = f"{name.partition('/')[2]} {sent}" if is_plain else OPEN
            if schema.create is not None:
                schema = replace(schema, create=replace(schema.create, fields={key: field} | schema.create.fields))
    return schema, posted


def without_questions(learned: ResourceType) -> ResourceType:
    """The type without references of which it is unknown where they lead, or how they are added to their list, where no file asks."""
    fields, authors = {**learned.fields}, learned.fields.get(AUTHORS)
    unsent = dict[str, LeftOut]()
    if authors is not None and learned.resource == PUBLICATIONS:
        entries = {name: part for name, part in authors.entries.items() if not part.is_open}
        fields[AUTHORS] = replace(authors, entries=entries)
        unsent = {f"{AUTHORS}/{name}": LeftOut.UNKNOWN_REFERENCE for name in authors.entries.keys() - entries.keys()}
    unsent |= {
        name: LeftOut.LINK if field.post == OPEN else LeftOut.UNKNOWN_REFERENCE
        for name, field in fields.items()
        if field.is_open
    }
    fields = {name: field for name, field in fields.items() if name not in unsent}
    return replace(learned, fields=fields, left_out=learned.left_out | unsent).without_parts_of_links()


def earlier_decisions(data: DataFolder, journal: Journal, source_url: str, target_url: str) -> Decisions:
    """What people decided about the conflicts of the newest plan, without decisions that were applied since."""
    newest = newest_table(data, source_url, target_url)
    if newest is None:
        return {}
    earlier, table = newest

    def is_applied(decision: RecordDecision) -> bool:
        kinds = (WriteKind.MERGE,) if decision.decision == Decision.MERGE else RECORD_WRITES
        return decision.decision in APPLIED_ONCE and any(
            entry.state == WriteState.DONE and entry.kind in kinds and entry.begun_at >= earlier.created_at
            for entry in journal.of_record(decision.resource, decision.source_id)
        )

    return {key: decision for key, decision in read_decisions(table).items() if not is_applied(decision)}


def new_plan_name(data: DataFolder, source: Snapshot, target: str, now: datetime) -> str:
    """A name for a plan that is made now, which no other plan has."""
    moment = now.astimezone(UTC)
    while (plans_folder(data) / plan_name(source.manifest.tenant, target, moment)).exists():
        moment += timedelta(seconds=1)
    return plan_name(source.manifest.tenant, target, moment)


def remove_unfinished(data: DataFolder, target: str) -> None:
    """Remove the unfinished plans of killed processes; under the lease of the target."""
    for folder in plans_folder(data).glob(f"*-to-{target}-*Z"):
        if folder.is_dir() and not (folder / FACTS).exists():
            shutil.rmtree(folder, ignore_errors=True)
