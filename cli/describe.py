"""`bookferry describe TENANT`: the shapes of a library's resources, and where each was learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from cli.output import Output, print_table
from cli.progress import SHOWN_WAIT_SECONDS
from pipelines.doctor.learned_shapes import (
    LearnedField,
    LearnedLibrary,
    LearnedResource,
    learn_library,
    report_document,
)
from pipelines.errors import ExitStatus
from pipelines.humanize import counted, duration
from pipelines.inventory import default_resources
from pipelines.service.client import Waiting
from pipelines.settings.settings import Settings
from pipelines.store.durable import storage_errors, write_atomically

_COLUMNS = ("field", "in the records", "in the description", "in Bookferry")
_KEYS = ("field", "records", "description", "bookferry")


def describe_tenant(settings: Settings, tenant: str, report: Path | None, output: Output) -> ExitStatus:
    """Print what is known of the library's shapes. `report`: a file for an issue, without a value of any record."""

    def on_wait(why: Waiting) -> None:
        if why.seconds >= SHOWN_WAIT_SECONDS:
            output.say(f"waiting {duration(why.seconds)}: {why.reason}")

    library = learn_library(settings, tenant, on_wait)
    if report is not None:
        with storage_errors(report):
            write_atomically(report, msgspec.json.format(msgspec.json.encode(report_document(library))))
    output.result(_document(library, report), lambda console: _print(console, library, report))
    return ExitStatus.COMPLETE


def _document(library: LearnedLibrary, report: Path | None) -> dict[str, Any]:
    described = library.description
    return {
        "tenant": library.tenant,
        "api": library.api,
        "requests": library.requests,
        "report": str(report) if report else None,
        "description": {
            "address": described.address,
            "learned_at": described.learned_at,
            "sha256": described.sha256 or None,
            "problem": described.problem or None,
            "notes": described.notes,
            "operations": len(described.operations),
        },
        "resources": {
            one.resource: {
                "source": one.source or None,
                "records": one.shape.records,
                "sampled": one.shape.sampled,
                "described": bool(one.schema.record or one.schema.create),
                "fields": [dict(zip(_KEYS, _row(found), strict=True)) for found in library.fields(one)],
            }
            for one in library.resources
        },
    }


def _row(found: LearnedField) -> tuple[str, str, str, str]:
    return found.path, found.records, found.described, found.here


def _print(console: Console, library: LearnedLibrary, report: Path | None) -> None:
    described = library.description
    if described.problem:
        console.print(f"Description: {described.problem} What follows was learned from records alone.")
    else:
        console.print(f"Description: {described.address}, {counted(len(described.operations), 'operation')}.")
    for remark in described.notes:
        console.print(f"  {remark}")
    for one in library.resources:
        console.print()
        console.print(Text(one.resource, "bold"), Text(f" {_source(one, library.api)}", "dim"))
        rows = [_row(found) for found in library.fields(one)]
        if rows:
            print_table(console, _COLUMNS, rows)
    console.print()
    console.print(
        f"{counted(library.requests, 'request')}. `in Bookferry` says where a backup keeps a field; every field is in the raw table."
    )
    if report is not None:
        console.print(f"{report} has shapes and counts for an issue, and no value of a record.")


def _source(one: LearnedResource, api: str) -> str:
    if not one.source and one.resource not in default_resources(api):
        answer = f" (the service answered {one.status})" if one.status else ""
        return f'version 2 documents no list of them{answer}. A tenant of the same library with api = "v3" reads them'
    if not one.source:
        status = f": the service answered {one.status}" if one.status else ""
        return f"no record was seen{status}; a backup of it would show its fields"
    part = ", a part of all" if one.shape.sampled else ""
    return f"{counted(one.shape.records, 'record')} of {one.source}{part}"
