"""`bookferry describe TENANT`: the fields of a library's resources, and where each was seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.text import Text

from cli.output import Answer, ReadableTable
from cli.progress import say_wait
from pipelines.doctor.described_fields import DescribedResource, describe, public_shapes
from pipelines.doctor.look import Look
from pipelines.humanize import counted
from pipelines.inventory import default_resources
from pipelines.settings.settings import Settings
from pipelines.store.durable import storage_errors, write_atomically

_COLUMNS = ("field", "in the records", "in the description", "in Bookferry")


def describe_tenant(settings: Settings, *, tenant: str, report: Path | None) -> Answer:
    """What is known of the library's fields. `report`: a file for an issue, without a value of any record."""
    with Look(settings, tenant, on_wait=say_wait) as look:
        resources = describe(look)
        if report is not None:
            with storage_errors(report):
                write_atomically(report, msgspec.json.format(msgspec.json.encode(public_shapes(look, resources))))
        return Answer(_document(look, resources, report), [*_lines(look, resources, report)])


def _document(look: Look, resources: Sequence[DescribedResource], file: Path | None) -> dict[str, Any]:
    described = look.description
    return {
        "tenant": look.tenant,
        "api": look.api,
        "requests": look.requests,
        "report": str(file) if file else None,
        "description": {
            "address": described.address,
            "learned_at": described.learned_at,
            "sha256": described.sha256 or None,
            "problem": described.problem or None,
            "notes": described.notes,
            "operations": len(described.operations),
        },
        "resources": {
            each.resource: {
                "source": each.source or None,
                "records": each.shape.records,
                "sampled": each.shape.sampled,
                "described": bool(each.schema.record or each.schema.create),
                "fields": [field._asdict() for field in each.fields()],
            }
            for each in resources
        },
    }


def _lines(look: Look, resources: Sequence[DescribedResource], file: Path | None) -> Iterator[RenderableType]:
    described = look.description
    if described.problem:
        yield f"Description: {described.problem} What follows was learned from records alone."
    else:
        yield f"Description: {described.address}, {counted(len(described.operations), 'operation')}."
    yield from (f"  {remark}" for remark in described.notes)
    for each in resources:
        yield Text.assemble("\n", (each.resource, "bold"), (f"  {_source(each, look.api)}", "dim"))
        if rows := [*each.fields()]:
            yield ReadableTable(_COLUMNS, rows)
    requests = counted(look.requests, "request")
    yield f"\n{requests}. `in Bookferry` says where a backup keeps a field; every field is in the raw table."
    if file is not None:
        yield f"{file} has shapes and counts for an issue, and no value of a record."


def _source(each: DescribedResource, api: str) -> str:
    if not each.source and each.resource not in default_resources(api):
        answer = f" (the service answered {each.status})" if each.status else ""
        return f'version 2 documents no list of them{answer}. A tenant of the same library with api = "v3" reads them'
    if not each.source:
        status = f": the service answered {each.status}" if each.status else ""
        return f"no record was seen{status}; a backup of it would show its fields"
    part = ", a part of all" if each.shape.sampled else ""
    return f"{counted(each.shape.records, 'record')} of {each.source}{part}"
