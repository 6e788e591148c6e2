"""Checks before an apply that a plan still fits the target: compared again with a new reading, it must come out the same (I8)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any

from pipelines.errors import StopError
from pipelines.inventory import plural
from pipelines.migration.mapping.mapping_file import MappingFile
from pipelines.migration.model.actions import Action
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.journal_entries import WriteKind, WriteState
from pipelines.migration.model.plan import Plan
from pipelines.migration.model.resource_types import AUTHORITIES, PUBLICATIONS, WRITING_ORDER, may_appear
from pipelines.migration.model.target_comparison import Located, TargetComparison, value_before
from pipelines.records.values import RecordId
from pipelines.shapes.model import Description, ResourceSchema

EXAMPLES = 5
"""Records that the message names."""

_NOT_LINKED = (
    "is_begun AND source_id NOT IN (SELECT source_id FROM entries WHERE resource = '{resource}' "  # noqa: S608  our own words
    f"AND kind = '{WriteKind.LINK}' AND state = '{WriteState.DONE}')"
)
"""Matches the records of a resource of which a request set the fields, but no second one the references."""


def check_fresh(comparison: TargetComparison, description: Description | None) -> None:
    """Raise `StopError` where the target as it is now needs another plan. `description`: its own one now, if it can be read.

    Checks the records that no apply has begun: that those to be created have not appeared since, that those found by their names have them
    still, and that nobody changed what the plan knows of those to be changed. Of those begun, nobody may have changed the references that
    a second request is to set. Once any publication was written, new authorities may be from the service itself: they are looked up again
    just before authorities are written.
    """
    plan = comparison.plan
    stale, count = [*_described_otherwise(plan, description)], 0
    may_be_new = may_appear(plan.facts.counts) and any(
        entry.resource == PUBLICATIONS for entry in comparison.step.journal.of_plan(plan.name)
    )
    for resource in () if stale else filter(comparison.now.__contains__, WRITING_ORDER):
        problems = _problems(comparison, resource, may_be_new=may_be_new and resource == AUTHORITIES)
        for problem in chain(problems, _edited_links(comparison, resource)):
            count += 1
            stale += [problem] if count <= EXAMPLES else []
    if not stale:
        return
    records = f", and {count:,} of its records need another plan now" if count else ""
    raise _is_stale(plan, f"'{plan.facts.target.tenant}' changed since the plan was made{records}: {'; '.join(stale)}")


def check_mapping(plan: Plan, mapping: MappingFile | None) -> None:
    """Raise `StopError` where the mapping file that a plan follows says something else now."""
    if mapping is not None and plan.facts.mapping_sha256 not in ("", mapping.sha256):
        raise _is_stale(plan, f"{mapping.path} was changed since the plan was made, and the plan does not follow that")


def _is_stale(plan: Plan, why: str) -> StopError:
    source, target = plan.facts.source.tenant, plan.facts.target.tenant
    resources = [resource for resource in plan.facts.resources if resource != PUBLICATIONS]
    named = f" --resources {','.join(resources)}" if resources else ""
    return StopError(
        f"Plan {plan.name} is stale: {why}. Nothing was written. Make a new plan: `bookferry migrate plan {source} {target}{named}`."
    )


def _described_otherwise(plan: Plan, now: Description | None) -> Iterator[str]:
    """Yield the resources that the plan writes and that the target takes otherwise now, by its description."""
    before = plan.facts.description
    if not before or now is None or before.sha256 == now.sha256:
        return
    for resource in (PUBLICATIONS, *plan.facts.written_other_resources):
        names = {name.partition("/")[0] for name in (plan.types[resource].fields if resource in plan.types else ())}
        earlier, later = (description.resources.get(resource, ResourceSchema()) for description in (before, now))
        if _taken(earlier, names) != _taken(later, names):
            yield f"it takes {plural(resource)} otherwise, by its description"


def _taken(schema: ResourceSchema, names: Collection[str]) -> list[Any]:
    """What a description says of the requests that create and change records with these fields."""
    return [
        (body.method, body.wrapped_in, [body.fields.get(name) for name in names], {*body.required}.difference(names))
        for body in (schema.create, schema.change)
        if body is not None
    ]


def _problems(comparison: TargetComparison, resource: str, *, may_be_new: bool) -> Iterator[str]:
    """Yield why each row of a resource that is still to be written does not fit any more."""
    resource_type = comparison.types[resource]
    comparison.locate(resource)
    for source_id, ids in () if may_be_new else comparison.appeared():
        numbers = ", ".join(map(str, ids[:3]))
        yield f"{resource} {source_id} was to be created, and seems to be there now ({numbers})"
    has_names = not resource_type.documented and all(len(names) == 1 for names in resource_type.keys)
    for source_id, target_id in comparison.renamed(resource) if has_names else ():
        yield f"{resource} {source_id} was found as {target_id}, which has another name by now, or is gone"
    for located in comparison.located(resource, f"action <> '{Action.CREATE}' AND NOT is_begun"):
        row, form = located.row, located.form
        change = f"{resource} {row.source_id} was to change {row.target_id}"
        if row.action == Action.MERGE:
            if not _have_one_name(comparison, [row.existing_target_id, *row.candidates]):
                goes = ", ".join(map(str, row.candidates))
                yield (
                    f"{resource} {goes} were to be merged into {row.target_id}, and they are not all there any more, or have other names"
                )
        elif row.action == Action.PATCH and form is None:
            yield f"{change}, which is not there any more"
        elif row.action == Action.PATCH and form is not None:
            before, now = value_before(row, resource_type), resource_type.compared(form.values)
            if any(now.get(name) != before.get(name) for name in comparison.differing(located, now)):
                yield f"{change}, and people changed that"


def _edited_links(comparison: TargetComparison, resource: str) -> Iterator[str]:
    """Yield the records whose references people changed before a second request set them."""
    has_references = comparison.types[resource].references
    for located in comparison.located(resource, _NOT_LINKED.format(resource=resource)) if has_references else ():
        if any(_is_edited(comparison, located, name) for name in located.row.references):
            yield f"{resource} {located.row.source_id} was to be linked as {located.target_id}, and people changed that"


def _is_edited(comparison: TargetComparison, located: Located, name: str) -> bool:
    """Whether a reference that a second request sets is neither as the first one left it nor as it is to be."""
    row, resource_type = located.row, comparison.types[located.row.resource]
    if located.form is None or not row.references[name].later or name in resource_type.posted:
        return False
    now = digest(resource_type.compared(located.form.values).get(name))
    before = digest(value_before(row, resource_type).get(name))
    if now in comparison.unlinked(located, name) or (located.state != WriteState.DONE and now == before):
        return False
    return not comparison.is_led(row, name) or now != resource_type.digest_of(name, comparison.reference(row, name))


def _have_one_name(comparison: TargetComparison, ids: list[RecordId]) -> bool:
    """Whether all of these records are in the target, under one name."""
    query = "SELECT count(DISTINCT id), count(DISTINCT value) FROM target_keys WHERE stage = 'folded' AND id IN (SELECT unnest(?))"
    return comparison.database.cursor().execute(query, [[*map(str, ids)]]).fetchone() == (len(ids), 1)
