"""`bookferry migrate`: plan, decide, apply, verify, status, undo; and restore and drill. Each names the function that answers it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli import completion
from cli.boundary import command
from cli.commands.application import Application
from cli.options import BackedUpTenant, SnapshotOption

migrate = Application(name="migrate", help="Migrate a library from version 2 to version 3: plan, apply, verify, undo.")

PlanArgument = Annotated[
    str,
    typer.Argument(
        autocompletion=completion.plans, help="Name of a plan, as `migrate plan` printed it, or its folder."
    ),
]


ResourcesOption = Annotated[
    str,
    typer.Option(
        help="What to migrate besides the publications and their files, separated by commas: users, authorities, collections, hard_copies, "
        "tasks. The library may send an e-mail to each person whose account is created.",
        metavar="NAMES",
    ),
]


OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Where library and snapshot differ, write the snapshot's value.")
]


@migrate.command("map")
@command("cli.migrate:map_libraries")
def map_libraries(
    source: Annotated[
        str, typer.Argument(autocompletion=completion.snapshots, help="A tenant, or a snapshot: TENANT/SNAPSHOT.")
    ],
    target: Annotated[str, typer.Argument(autocompletion=completion.tenants, help="The v3 tenant to write into.")],
    resources: ResourcesOption = "",
) -> None:
    """Write a mapping file: what is known of resources that nobody documents, and what a person must answer. Writes to no library."""


@migrate.command("plan")
@command("cli.migrate:make_plan")
def plan(  # noqa: PLR0917  one parameter for each option
    source: Annotated[
        str,
        typer.Argument(
            autocompletion=completion.snapshots,
            help="A tenant, which is backed up first, or a snapshot: TENANT/SNAPSHOT.",
        ),
    ],
    target: Annotated[str, typer.Argument(autocompletion=completion.tenants, help="The v3 tenant to write into.")],
    newest: Annotated[
        bool, typer.Option("--newest", help="Use the newest snapshot of the tenant, without a new backup.")
    ] = False,
    resources: ResourcesOption = "",
    overwrite: OverwriteOption = False,
    first_days: Annotated[
        bool | None,
        typer.Option(
            "--first-days/--no-first-days",
            help="Send a date that is only a year or a month as its first day. Default: as the plan before, else not at all.",
            show_default=False,
        ),
    ] = None,
    invalid_identifiers: Annotated[
        bool | None,
        typer.Option(
            "--invalid-identifiers/--no-invalid-identifiers",
            help="Send identifiers that break the rules of their type, too. Default: as the plan before, else not at all.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Plan a migration: what it would write, how long it takes, and what a person must decide. Writes nothing."""


@migrate.command("decide")
@command("cli.migrate:decide_plan")
def decide(
    plan: PlanArgument,
    file: Annotated[
        Path, typer.Argument(help="The conflicts.tsv that was saved from the plan's page or from a spreadsheet.")
    ],
) -> None:
    """Take decisions over into a plan: a conflicts.tsv that librarians filled in. The next plan follows them. Writes to no library."""


ForceOption = Annotated[
    bool,
    typer.Option(
        "--force", help="Go on although much of the target changes or many records fail: without safety limits."
    ),
]


@migrate.command("apply")
@command("cli.migrate:apply_plan")
def apply(
    plan: PlanArgument,
    limit: Annotated[
        int | None,
        typer.Option(min=1, metavar="NUMBER", help="The most records to write; the next `migrate apply` continues."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Write only these, separated by commas: create, patch, merge, files.",
            metavar="WHAT",
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write exactly what a plan says. It can be stopped at any time and run again; it writes nothing twice."""


@migrate.command("verify")
@command("cli.migrate:verify_plan")
def verify(
    plan: PlanArgument,
    contents: Annotated[
        bool, typer.Option("--contents", help="Also fetch every file again and compare its bytes.")
    ] = False,
    evidence: Annotated[
        Path | None,
        typer.Option(
            help="Create this folder as evidence: a bag (BagIt) of plan, journal, findings and records.",
            metavar="FOLDER",
        ),
    ] = None,
) -> None:
    """Verify a migration: read the target again and compare every record with the plan. Exits with 6 when anything differs."""


@migrate.command("status")
@command("cli.migrate:show_status")
def status(
    plan: PlanArgument,
    record: Annotated[
        int | None,
        typer.Option(
            help="Show one publication, by its id in the source, in source, plan and target. Sends one request."
        ),
    ] = None,
) -> None:
    """Show the progress of a plan: what is done, what remains, what was refused or is unclear. Sends no request."""


@migrate.command("undo")
@command("cli.migrate:undo_plan")
def undo(
    plan: PlanArgument,
    really: Annotated[
        bool, typer.Option("--really", help="Undo the plan. Without this option, only print what would be done.")
    ] = False,
    force: ForceOption = False,
) -> None:
    """Undo what a plan wrote: delete what it created, restore what it changed. Leaves what people have edited since."""


@command("cli.restore:restore_snapshot")
def restore(
    snapshot: Annotated[
        str,
        typer.Argument(
            autocompletion=completion.snapshots,
            help="TENANT/SNAPSHOT, the id of a snapshot, or a tenant for its newest one with all publications.",
        ),
    ],
    tenant: Annotated[str, typer.Argument(autocompletion=completion.tenants, help="The v3 tenant to restore into.")],
    overwrite: OverwriteOption = False,
    resources: ResourcesOption = "",
) -> None:
    """Restore a snapshot: create what the library lacks, and verify it. Deletes nothing; overwrites only with --overwrite."""


@command("cli.restore:drill_tenant")
def drill(
    tenant: BackedUpTenant,
    snapshot: SnapshotOption = None,
) -> None:
    """Prove that a backup can be restored: restore it into a local sandbox, read it again, and compare every field and byte."""
