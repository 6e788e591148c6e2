"""`bookferry demo`: a real library on this machine goes the whole way: backed up, asked three questions, planned, moved, proved."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from cli.backup import print_summary, summary
from cli.jobs import run_backup, run_step
from cli.migrate import (
    made,
    migrating,
    plan_document,
    print_applied,
    print_proof,
    proof_document,
)
from cli.output import Output, command_line
from cli.progress import ProgressDisplay
from cli.query import print_rows, run_sql
from pipelines.errors import ConfigurationError, ExitStatus
from pipelines.examples import ExampleQuery, example
from pipelines.inventory import default_resources
from pipelines.migration.apply.run import as_json
from pipelines.migration.flow import Result
from pipelines.migration.model.plan import HTML, Plan
from pipelines.migration.model.wording import headline
from pipelines.migration.verify.run import MigrationVerification
from pipelines.service.sandbox_process import CLIENT_ID, sandbox_process, store_sign_in
from pipelines.settings.loading import CONFIG_FILE, load_settings
from pipelines.settings.settings import Settings
from pipelines.store.catalogue import open_catalogue
from pipelines.store.maintenance.reports import page_of
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from pipelines.store.stores import open_data

REQUESTS_PER_MINUTE = 20_000
"""The demonstration's own limit, on both sides: at the service's 60 a minute it would take two hours to move 5,445 records."""

TENANT = "demo"
TARGET = "new"
MARKER = "# Written by `bookferry demo`; the next demonstration replaces it."

CONFIG = """\
{marker}
# The library it names ran only during the demonstration; its snapshots can be explored as long as you like.
data = "library-data"

[tenants.{tenant}]
base_url = "{base_url}"
api = "v2"
username_env = "BOOKFERRY_DEMO_USER"
password_env = "BOOKFERRY_DEMO_PASSWORD"
requests_per_minute = {limit}

[tenants.{target}]
base_url = "{target_url}"
api = "v3"
client_id = "{client}"
client_auth = "none"
requests_per_minute = {limit}
"""

Answers = list[tuple[ExampleQuery, list[dict[str, object]]]]

_SANDBOX = [
    *("--tenant", f"{TENANT}=real", "--tenant", f"{TARGET}=empty"),
    *("--requests-per-minute", str(REQUESTS_PER_MINUTE)),
    *("--port", "0"),
]

QUESTIONS = ("collection_by_decade", "gaps_by_kind", "possible_duplicates")
"""Files in sql/examples that the demonstration runs."""

SHOWN = 15
"""Rows of each answer on the terminal."""


def run(folder: Path, output: Output, *, backup_only: bool = False) -> ExitStatus:
    """Sandbox up, backup, three answers, plan, apply, verify, a second plan, sandbox down. Leaves `folder` to be explored."""
    config = _own_config(folder)
    with sandbox_process(_SANDBOX) as ready:
        tenant = ready["tenants"][TENANT]
        output.say(
            f"A local stand-in of the service runs at {ready['url']} with {tenant['publications']:,} real publications in a library of\n"
            f"version 2, and an empty one of version 3. It grants {REQUESTS_PER_MINUTE:,} requests a minute for this demonstration; the\n"
            "real service grants about 60.\n"
        )
        _write_config(config, tenant["base_url"], ready["tenants"][TARGET]["base_url"])
        os.environ["BOOKFERRY_DEMO_USER"], os.environ["BOOKFERRY_DEMO_PASSWORD"] = tenant["user"], tenant["password"]
        settings = load_settings(config)
        store_sign_in(settings, TARGET, ready, TARGET)
        with ProgressDisplay() as display:
            snapshot = run_backup(settings, TENANT, default_resources("v2"), display).snapshot
        data = open_data(settings)
        answers, page = _answers(data), page_of(data, snapshot)
        moved = None if backup_only else _move(settings, snapshot, output)
    document = {
        **summary(snapshot),
        "report": page,
        "config": str(config.absolute()),
        "answers": {asked.name: rows for asked, rows in answers},
        **({} if moved is None else {"migration": moved.document()}),
    }

    def tell(console: Console) -> None:
        _print_answers(console, answers, config)
        if moved is not None:
            print_summary(console, snapshot, page)
            moved.tell(console)
        console.print(f"\nWhat to look at next, in {config.parent}/:")
        for step in _next_steps(config):
            console.print(f"  {step}")
        console.print(f"With a library of your own: {command_line('init')}\n")
        if moved is None:
            print_summary(console, snapshot, page)
        else:
            print_proof(console, moved.plan, moved.proof)

    output.result(document, tell)
    if moved is None:
        return ExitStatus.COMPLETE if snapshot.manifest.complete else ExitStatus.PARTIAL
    if not moved.proof.equal or not moved.again.facts.empty:
        return ExitStatus.DIFFERENCES
    return ExitStatus.COMPLETE if snapshot.manifest.complete and moved.result.applied.complete else ExitStatus.PARTIAL


@dataclass(frozen=True)
class Moved:
    """The steps of the migration."""

    plan: Plan
    result: Result
    proof: MigrationVerification
    again: Plan
    """A second plan, which has nothing left to write."""

    def document(self) -> dict[str, Any]:
        """What each step says of itself."""
        return {
            "plan": plan_document(self.plan),
            "apply": as_json(self.result.applied, self.result.requests),
            "verify": proof_document(self.proof),
            "second_plan": plan_document(self.again),
        }

    def tell(self, console: Console) -> None:
        """The same in words; what was proved comes last of all."""
        console.print()
        for line in headline(self.plan.facts, datetime.now(UTC)):
            console.print(line)
        console.print(f"The plan, for librarians: {self.plan.path(HTML)}")
        print_applied(console, self.plan, self.result)
        console.print(f"A second plan is {'empty' if self.again.facts.empty else 'NOT empty'}: {self.again.name}.")


def _move(settings: Settings, snapshot: Snapshot, output: Output) -> Moved:
    output.say("Moving it into the library of version 3: plan, apply, verify, and a second plan ...")
    with migrating(settings) as (migration, _display):
        source = {"source": snapshot.name}
        run_step(settings, migration, "plan_migration", (TARGET, "migration_plan"), source)
        plan = made(migration.planned)
        approved = {"plan": plan.name, "approval": plan.facts.seal}
        run_step(settings, migration, "apply_migration", (TARGET, "migration"), approved)
        proved = {"plan": plan.name, "contents": True}
        run_step(settings, migration, "verify_migration", (TARGET, "migration_proof"), proved)
        run_step(settings, migration, "plan_migration", (TARGET, "migration_plan"), source)
        return Moved(plan, made(migration.result), made(migration.proved), made(migration.planned))


def _own_config(folder: Path) -> Path:
    """Where the demonstration's configuration goes; a file that a person wrote there is not touched."""
    config = folder / CONFIG_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = config.exists() and not config.read_bytes().startswith(MARKER.encode())
    except OSError as error:
        raise ConfigurationError(
            f"{folder} cannot be used: {error.strerror}. Choose another: bookferry demo --folder NAME."
        ) from None
    if foreign:
        raise ConfigurationError(
            f"{config} is not the demonstration's. Choose another folder: bookferry demo --folder NAME."
        )
    return config


def _write_config(config: Path, base_url: str, target_url: str) -> None:
    text = CONFIG.format(
        marker=MARKER,
        tenant=TENANT,
        base_url=base_url,
        target=TARGET,
        target_url=target_url,
        client=CLIENT_ID,
        limit=REQUESTS_PER_MINUTE,
    )
    config.write_text(text, encoding="utf-8")


def _answers(data: DataFolder) -> Answers:
    answers = []
    with open_catalogue(data) as database:
        for name in QUESTIONS:
            asked = example(name)
            columns, rows = run_sql(database, asked.sql)
            answers.append((asked, [dict(zip(columns, row, strict=True)) for row in rows]))
    return answers


def _print_answers(console: Console, answers: Answers, config: Path) -> None:
    for asked, rows in answers:
        console.print(asked.question, style="bold")
        columns = list(rows[0]) if rows else []
        whole = command_line("query", "--config", str(config), "--example", asked.name)
        print_rows(console, columns, [tuple(row.values()) for row in rows], SHOWN, remedy=f"`{whole}` shows all")
        console.print()


def _next_steps(config: Path) -> list[str]:
    named = ("--config", str(config))
    return [
        command_line("tables", *named),
        command_line("query", *named, "--list-examples"),
        command_line("query", *named, "SELECT title, published_on FROM publications LIMIT 10"),
        command_line("snapshots", "show", TENANT, *named),
        command_line("ui", *named),
    ]
