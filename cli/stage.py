"""`bookferry stage`: load snapshots into Postgres, and register them in Iceberg tables, on request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console

from cli.output import Output, print_warning
from pipelines.errors import ConfigurationError, ExitStatus
from pipelines.humanize import counted, duration
from pipelines.settings.settings import Settings
from pipelines.store.encryption import personal_keys
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.store.stores import open_data

if TYPE_CHECKING:
    from pipelines.store.iceberg.tables import Registration
    from pipelines.store.postgres.loading import LoadResult


def stage_snapshots(
    settings: Settings, tenant: str | None, snapshot: str | None, output: Output, *, history: bool
) -> ExitStatus:
    """Stage the newest snapshot of one tenant or of all, or a named one, or with `history` all that are missing."""
    if snapshot is not None and (history or tenant is None):
        raise ConfigurationError(
            "--snapshot names one snapshot of one TENANT. Name the tenant, and leave --history out."
        )
    if tenant is not None:
        settings.tenant(tenant)
    data = open_data(settings, personal_keys(settings))
    tenants = [name for name in data.tenants() if name in settings.tenants] if tenant is None else [tenant]
    document = dict[str, Any]()
    if settings.stages or settings.iceberg is None:
        loads = _load(settings, data, tenants, snapshot, output, history=history)
        document["staged"] = [load_document(load) for load in loads]
    if settings.iceberg is not None:
        done = _register(settings, data, tenants, snapshot, output, history=history)
        document["iceberg"] = [load_document(one) for one in done]

    def show(console: Console) -> None:
        for load in loads if "staged" in document else ():
            print_load(console, load)
        for registration in done if "iceberg" in document else ():
            print_registration(console, registration)
        if not any(document.values()):
            console.print("Nothing to stage: every complete snapshot is there.")

    output.result(document, show)
    return ExitStatus.COMPLETE


def _load(
    settings: Settings, data: DataFolder, tenants: Sequence[str], snapshot: str | None, output: Output, *, history: bool
) -> list[LoadResult]:
    from pipelines.backup.database import open_database, stage_again  # noqa: PLC0415  few users have a database

    database, loads = open_database(settings), list[Any]()
    for name in tenants:
        output.say(f"Loading {name} into {database.place} ...")
        loads += stage_again(database, data, name, snapshot, history=history)
    return loads


def _register(
    settings: Settings, data: DataFolder, tenants: Sequence[str], snapshot: str | None, output: Output, *, history: bool
) -> list[Registration]:
    from pipelines.backup.iceberg import open_tables, register_again  # noqa: PLC0415  few users have a catalogue

    tables, done = open_tables(settings, data), list[Any]()
    for name in tenants:
        output.say(f"Registering {name} in {tables.place} ...")
        done += register_again(tables, data, name, snapshot, history=history)
    return done


def load_document(staged: LoadResult | Registration) -> dict[str, Any]:
    """The JSON document of a load, or of a registration."""
    return {**msgspec.to_builtins(staged), "rows": staged.rows}


def print_registration(console: Console, done: Registration) -> None:
    """Print a registration."""
    rows, tables = counted(done.rows, "row"), counted(len(done.tables), "table")
    console.print(
        f"Iceberg tables have {done.tenant}/{done.snapshot}: {rows} in {tables}, {duration(done.seconds)}. {done.catalogue}, "
        f"namespace {done.namespace}"
    )


def print_load(console: Console, staged: LoadResult) -> None:
    """Print a load; anything unexpected comes first."""
    for sentence in (*staged.left_out, *staged.notes):
        print_warning(console, sentence)
    rows, tables = counted(staged.rows, "row"), counted(len(staged.tables), "table")
    if staged.written is not None:
        rows += f" ({sum(staged.written.values()):,} changed)"
    console.print(
        f"Postgres shows {staged.tenant}/{staged.snapshot}: {rows} in {tables}, {duration(staged.seconds)}. {staged.database}, schema "
        f"{staged.schema}"
    )
