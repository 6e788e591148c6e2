"""`bookferry describe TENANT`: the fields of a library's resources, and where each was seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from cli.output import Answer, ReadableTable
from cli.progress import say_wait
from pipelines.doctor.described_fields import DescribedResource, describe, public_shapes
from pipelines.doctor.look import Look
from pipelines.humanize import counted
from pipelines.inventory import default_resources
from pipelines.settings.settings import Settings

_COLUMNS = ("field", "in the records", "in the description", "in Bookferry")


def describe_tenant(settings: Settings, *, tenant: str) -> Answer:
    """What is known of the library's fields. The document has no value of any record, so that it can be attached to an issue."""
    with Look(settings, tenant, on_wait=say_wait) as look:
        resources = describe(look)
        return Answer(public_shapes(look, resources), [*_lines(look, resources)])


def _lines(look: Look, resources: Sequence[DescribedResource]) -> Iterator[RenderableType]:
    described = look.description
    if described.problem:
        yield f"Description: {described.problem} What follows was learned from records alone."
    else:
        yield f"Description: {described.address}, {counted(len(described.operations), 'operation')}."
    yield from (f"  {remark}" for remark in described.notes)
    for resource in resources:
        yield Text.assemble("\n", (resource.resource, "bold"), (f"  {_source(resource, look.api)}", "dim"))
        if rows := [*resource.fields()]:
            yield ReadableTable(_COLUMNS, rows)
    requests = counted(look.requests, "request")
    yield f"\n{requests}. `in Bookferry` says where a backup keeps a field; every field is in the raw table."
    yield "--json prints shapes and counts for an issue, and no value of a record."


def _source(described: DescribedResource, api: str) -> str:
    if not described.source and described.resource not in default_resources(api):
        answer = f" (the service answered {described.status})" if described.status else ""
        return f'version 2 documents no list of them{answer}. A tenant of the same library with api = "v3" reads them'
    if not described.source:
        status = f": the service answered {described.status}" if described.status else ""
        return f"no record was seen{status}; a backup of it would show its fields"
    part = ", a part of all" if described.shape.sampled else ""
    return f"{counted(described.shape.records, 'record')} of {described.source}{part}"
