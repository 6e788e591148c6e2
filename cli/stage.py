"""`bookferry stage`: load snapshots into Postgres, and register them in Iceberg tables, on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from cli.output import Answer, say, warning
from pipelines.errors import ConfigurationError
from pipelines.humanize import counted, duration
from pipelines.settings.settings import Settings
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.store.stores import open_data

if TYPE_CHECKING:
    from pipelines.store.iceberg.tables import Registration
    from pipelines.store.postgres.loading import LoadResult


def stage_snapshots(settings: Settings, *, tenant: str | None, snapshot: str | None, history: bool) -> Answer:
    """Stage the newest snapshot of one tenant or of all, or a named one, or with `history` all that are missing."""
    if snapshot is not None and (history or tenant is None):
        raise ConfigurationError(
            "--snapshot names one snapshot of one TENANT. Name the tenant, and leave --history out."
        )
    if tenant is not None:
        settings.tenant(tenant)
    data = open_data(settings)
    tenants = [name for name in data.tenants() if name in settings.tenants] if tenant is None else [tenant]
    staged: dict[str, list[Any]] = {}
    for name, target, stage in _targets(settings, data):
        staged[name] = []
        for library in tenants:
            say(f"Staging {library} into {target.place} ...")
            staged[name] += stage(target, data, library, snapshot, history=history)
    lines: list[RenderableType] = [line for load in staged.get("staged", ()) for line in load_lines(load)]
    lines += map(registration_line, staged.get("iceberg", ()))
    return Answer(staged, lines or ["Nothing to stage: every complete snapshot is there."])


def _targets(settings: Settings, data: DataFolder) -> Iterator[tuple[str, Any, Callable[..., list[Any]]]]:
    """Where snapshots are staged: key in the document, the database or catalogue, and the function that stages into it."""
    if settings.stages or settings.iceberg is None:
        from pipelines.backup.database import open_database, stage_again  # noqa: PLC0415  few users have a database

        yield "staged", open_database(settings), stage_again
    if settings.iceberg is not None:
        from pipelines.backup.iceberg import open_tables, register_again  # noqa: PLC0415  few users have a catalogue

        yield "iceberg", open_tables(settings, data), register_again


def registration_line(done: Registration) -> str:
    """A registration in a sentence."""
    return f"Iceberg tables have {_contents(done)}. {done.catalogue}, namespace {done.namespace}"


def load_lines(staged: LoadResult) -> Iterator[RenderableType]:
    """A load in lines; anything unexpected comes first."""
    yield from map(warning, (*staged.left_out, *staged.notes))
    changed = f" ({sum(staged.written.values()):,} changed)"
    yield f"Postgres shows {_contents(staged, changed)}. {staged.database}, schema {staged.schema}"


def _contents(staged: LoadResult | Registration, changed: str = "") -> str:
    rows, tables = counted(staged.rows, "row"), counted(len(staged.tables), "table")
    return f"{staged.tenant}/{staged.snapshot}: {rows}{changed} in {tables}, {duration(staged.seconds)}"
