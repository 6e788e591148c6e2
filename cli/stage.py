"""`bookferry stage`: load snapshots into Postgres on request."""

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
from pipelines.store.stores import open_data

if TYPE_CHECKING:
    from pipelines.store.postgres.loading import LoadResult


def stage_snapshots(
    settings: Settings, tenant: str | None, snapshot: str | None, output: Output, *, history: bool
) -> ExitStatus:
    """Load the newest snapshot of one tenant or of all, or a named one, or with `history` all that are missing."""
    from pipelines.backup.database import open_database, stage_again  # noqa: PLC0415  few users have a database

    if snapshot is not None and (history or tenant is None):
        raise ConfigurationError(
            "--snapshot names one snapshot of one TENANT. Name the tenant, and leave --history out."
        )
    if tenant is not None:
        settings.tenant(tenant)
    database, data = open_database(settings), open_data(settings, personal_keys(settings))
    tenants = [name for name in data.tenants() if name in settings.tenants] if tenant is None else [tenant]
    loads = list[Any]()
    for name in tenants:
        output.say(f"Loading {name} into {database.place} ...")
        loads += stage_again(database, data, name, snapshot, history=history)
    output.result({"staged": [load_document(load) for load in loads]}, lambda console: _print(console, loads))
    return ExitStatus.COMPLETE


def load_document(staged: LoadResult) -> dict[str, Any]:
    """The JSON document of a load."""
    return {**msgspec.to_builtins(staged), "rows": staged.rows}


def _print(console: Console, staged: Sequence[LoadResult]) -> None:
    for load in staged:
        print_load(console, load)
    if not staged:
        console.print("Nothing to load: the database has every complete snapshot.")


def print_load(console: Console, staged: LoadResult) -> None:
    """Print a load; anything unexpected comes first."""
    for sentence in (*staged.left_out, *staged.notes):
        print_warning(console, sentence)
    rows, tables = counted(staged.rows, "row"), counted(len(staged.tables), "table")
    console.print(
        f"Postgres shows {staged.tenant}/{staged.snapshot}: {rows} in {tables}, {duration(staged.seconds)}. {staged.database}, schema "
        f"{staged.schema}"
    )
