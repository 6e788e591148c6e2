"""`bookferry migrate …`: the commands, each with its help; what they do is in cli/migrate.py."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli import migrate as steps
from cli.boundary import ConfigOption, JsonOption, command
from cli.output import Output
from cli.restore import drill_tenant, restore_snapshot
from pipelines.errors import ExitStatus
from pipelines.migration.apply.run import Limits
from pipelines.settings.loading import find_config, load_settings
from pipelines.settings.settings import Settings

migrate = typer.Typer(
    help="Move a library from version 2 to version 3: plan, apply, verify, undo.", no_args_is_help=True
)

PlanArgument = Annotated[str, typer.Argument(help="A plan's name, as `migrate plan` printed it, or its folder.")]


ResourcesOption = Annotated[
    str,
    typer.Option(
        help="What is moved beside the publications and their files, separated by commas: users, authorities, collections, hard_copies, "
        "tasks. Making an account may send that person an e-mail.",
        metavar="NAMES",
    ),
]


def names_in(text: str) -> list[str]:
    """The names in a list that is separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _settings(config: str | None) -> Settings:
    return load_settings(find_config(Path(config) if config else None))


@migrate.command("plan")
@command
def plan(  # noqa: PLR0917  one option after the other
    source: Annotated[
        str, typer.Argument(help="A tenant, of which a backup is made first, or a snapshot: TENANT/SNAPSHOT.")
    ],
    target: Annotated[str, typer.Argument(help="The v3 tenant that is moved into.")],
    newest: Annotated[
        bool, typer.Option("--newest", help="Make no backup: use the newest snapshot of the tenant.")
    ] = False,
    resources: ResourcesOption = "",
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 6 when there is something to write.")
    ] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Work out what moving a library would write, how long it takes, and what a person must decide. Writes nothing."""
    return steps.make_plan(
        _settings(config),
        source,
        target,
        Output(as_json=json),
        resources=names_in(resources),
        fresh=not newest,
        detailed=detailed_exitcode,
    )


@migrate.command("apply")
@command
def apply(  # noqa: PLR0917  the same
    plan: PlanArgument,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Write so many records at most; the next apply goes on.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Only create, patch or files, or only these ids of the source, separated by commas.", metavar="WHAT"
        ),
    ] = None,
    max_touched: Annotated[
        float, typer.Option(min=0, max=100, help="Percent of the target's publications that may be changed.")
    ] = Limits.touched_percent,
    max_failures: Annotated[int, typer.Option(min=0, help="Records that may fail before it stops.")] = Limits.failures,
    max_failures_percent: Annotated[
        float, typer.Option(min=0, max=100, help="Percent of the records tried that may fail before it stops.")
    ] = Limits.failures_percent,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Write exactly what a plan says. Can be stopped at any time and run again: nothing is written twice."""
    limits = Limits(max_failures, max_failures_percent, max_touched)
    return steps.apply_plan(_settings(config), plan, Output(as_json=json), limits=limits, limit=limit, only=only or [])


@migrate.command("verify")
@command
def verify(
    plan: PlanArgument,
    contents: Annotated[
        bool, typer.Option("--contents", help="Fetch every file again, too, and compare its bytes.")
    ] = False,
    evidence: Annotated[
        Path | None,
        typer.Option(
            help="Make this folder: a bag (BagIt) of plan, journal, findings and records, to be kept.", metavar="FOLDER"
        ),
    ] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Prove a migration: read the target again and compare every record with the plan. Exits with 6 when anything differs."""
    return steps.verify_plan(_settings(config), plan, Output(as_json=json), contents=contents, evidence=evidence)


@migrate.command("status")
@command
def status(
    plan: PlanArgument,
    record: Annotated[
        int | None, typer.Option(help="One publication, by its id in the source, as each side has it: one request.")
    ] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """How far a plan is: what is done, what is left, what was refused or is unclear. Asks the library for nothing."""
    return steps.tell_status(_settings(config), plan, Output(as_json=json), record=record)


@migrate.command("undo")
@command
def undo(
    plan: PlanArgument,
    really: Annotated[bool, typer.Option("--really", help="Do it; without, only tell what would be done.")] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Take back what a plan wrote: delete what it created, restore what it changed. What people edited since is left."""
    return steps.undo_plan(_settings(config), plan, Output(as_json=json), really=really)


def restore(  # noqa: PLR0917  one option after the other
    snapshot: Annotated[
        str,
        typer.Argument(
            help="TENANT/SNAPSHOT, a snapshot's id, or a tenant for its newest one that holds all publications."
        ),
    ],
    tenant: Annotated[str, typer.Argument(help="The v3 tenant that it is put into.")],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Where both hold something else, the snapshot's value counts.")
    ] = False,
    resources: ResourcesOption = "",
    plan_only: Annotated[
        bool, typer.Option("--plan-only", help="Only make the plan; `migrate apply` writes it.")
    ] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Put a snapshot back: what the library lacks is created and proved; nothing is deleted, nothing overwritten unless you say so."""
    return restore_snapshot(
        _settings(config),
        snapshot,
        tenant,
        Output(as_json=json),
        resources=names_in(resources),
        overwrite=overwrite,
        plan_only=plan_only,
    )


def drill(
    tenant: Annotated[str, typer.Argument(help="A tenant that has snapshots.")],
    snapshot: Annotated[str | None, typer.Option(help="A snapshot's id; the newest complete one if not given.")] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Prove that a backup can be put back: restore it into a local sandbox, read it again, compare every field and every byte."""
    return drill_tenant(_settings(config), tenant, snapshot, Output(as_json=json))
