"""`bookferry demo`: a real library on this machine is backed up, queried, migrated and verified."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from cli.backup import make_backup, print_summary, summary
from cli.command_lines import command_line
from cli.migrate import applied_plan, migrating, planned, verified
from cli.migration_output import plan_document, print_applied, print_headline, print_proof
from cli.output import Output
from cli.progress import ProgressDisplay
from cli.query import print_rows, run_sql
from pipelines.errors import ConfigurationError, ExitStatus
from pipelines.examples import ExampleQuery, example
from pipelines.file_access import restrict_new_files
from pipelines.migration.apply.run import LIMITS, as_json
from pipelines.migration.flow import AppliedPlan
from pipelines.migration.model.losses import losses_of
from pipelines.migration.model.plan import HTML, Plan
from pipelines.migration.verify.verdict import MigrationVerification
from pipelines.service.sandbox_process import CLIENT_ID, sandbox_process, store_sign_in
from pipelines.settings.loading import CONFIG_FILE, load_settings
from pipelines.settings.settings import Settings
from pipelines.store.catalogue import open_catalogue
from pipelines.store.maintenance.reports import report_address
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from pipelines.store.stores import open_data

REQUESTS_PER_MINUTE = 20_000
"""The limit of the demonstration, on both sides. At the service's 60 a minute, 5,445 records would take two hours."""

TENANT = "demo"
TARGET = "new"
MARKER = "# Written by `bookferry demo`; the next demonstration replaces it."

CONFIG = """\
{marker}
# The libraries below ran only during the demonstration. You can keep and explore the snapshots.
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
"""Queries of sql/examples that the demonstration runs."""

MOST_PRINTED = 15
"""Rows of each result on the terminal."""


def run(folder: Path, output: Output, *, backup_only: bool = False) -> ExitStatus:
    """Start a sandbox; backup, three queries, plan, apply, verify, a second plan; stop the sandbox. The files stay in `folder`."""
    restrict_new_files(None)
    config = _own_config(folder)
    with sandbox_process(_SANDBOX) as ready:
        tenant = ready["tenants"][TENANT]
        output.say(
            f"A local replacement of the service runs at {ready['url']} with {tenant['publications']:,} real publications in a library of\n"
            f"version 2, and an empty one of version 3. It grants {REQUESTS_PER_MINUTE:,} requests a minute for this demonstration; the\n"
            "real service grants about 60.\n"
        )
        _write_config(config, tenant["base_url"], ready["tenants"][TARGET]["base_url"])
        os.environ["BOOKFERRY_DEMO_USER"], os.environ["BOOKFERRY_DEMO_PASSWORD"] = tenant["user"], tenant["password"]
        settings = load_settings(config)
        store_sign_in(settings, TARGET, ready, TARGET)
        with ProgressDisplay() as display:
            snapshot = make_backup(settings, TENANT, display).snapshot
        data = open_data(settings)
        answers, page = _answers(data), report_address(data, snapshot)
        migration = None if backup_only else _migrate(settings, snapshot, output)
    document = {
        **summary(snapshot),
        "report": page,
        "config": str(config.absolute()),
        "answers": {query.name: rows for query, rows in answers},
        **({} if migration is None else {"migration": migration.document()}),
    }

    def render(console: Console) -> None:
        _print_answers(console, answers, config)
        # the notes are about the end of version 2, for libraries that go on
        print_summary(console, snapshot, page, notes=False)
        if migration is not None:
            migration.print(console)
        console.print(f"\nThe libraries of the demonstration are gone. To explore what they left in {config.parent}/:")
        for step in _next_steps(config):
            console.print(f"  {step}")
        console.print(f"\nTo begin with a library of your own:\n  {command_line('init')}")

    output.result(document, render)
    if migration is None:
        return ExitStatus.COMPLETE if snapshot.manifest.complete else ExitStatus.PARTIAL
    if not migration.proof.equal or not migration.second_plan.facts.empty:
        return ExitStatus.DIFFERENCES
    return (
        ExitStatus.COMPLETE if snapshot.manifest.complete and migration.result.applied.complete else ExitStatus.PARTIAL
    )


@dataclass(frozen=True)
class MigrationSteps:
    """The results of the migration's steps."""

    plan: Plan
    result: AppliedPlan
    proof: MigrationVerification
    second_plan: Plan
    """Has nothing left to write."""

    def document(self) -> dict[str, Any]:
        """The JSON document of each step."""
        return {
            "plan": plan_document(self.plan),
            "apply": as_json(self.result.applied, self.result.requests),
            "verify": msgspec.to_builtins(self.proof),
            "second_plan": plan_document(self.second_plan),
        }

    def print(self, console: Console) -> None:
        """Print plan, writes and verification."""
        console.print()
        print_headline(console, self.plan, losses_of(self.plan))
        console.print(f"The plan, for librarians: {self.plan.path(HTML)}")
        print_applied(console, self.plan, self.result, verified=True)
        print_proof(console, self.plan, self.proof)
        console.print(
            f"A second plan is {'empty' if self.second_plan.facts.empty else 'NOT empty'}: {self.second_plan.name}."
        )


def _migrate(settings: Settings, snapshot: Snapshot, output: Output) -> MigrationSteps:
    output.say("Migrating it into the library of version 3: plan, apply, verify, and a second plan ...")
    with migrating(settings) as (migration, _display):
        plan = planned(migration, snapshot.name, TARGET)
        applied = applied_plan(migration, plan, LIMITS)
        proof = verified(migration, plan, contents=True)
        return MigrationSteps(plan, applied, proof, planned(migration, snapshot.name, TARGET))


def _own_config(folder: Path) -> Path:
    """Path of the demonstration's configuration. A file that a person wrote there is not touched."""
    config = folder / CONFIG_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = config.exists() and not config.read_bytes().startswith(MARKER.encode())
    except OSError as error:
        raise ConfigurationError(
            f"{folder} cannot be used: {error.strerror}. Choose another: `bookferry demo --folder NAME`."
        ) from None
    if foreign:
        raise ConfigurationError(
            f"{config} was not written by `bookferry demo`. Choose another folder: `bookferry demo --folder NAME`."
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
            query = example(name)
            columns, rows = run_sql(database, query.sql)
            answers.append((query, [dict(zip(columns, row, strict=True)) for row in rows]))
    return answers


def _print_answers(console: Console, answers: Answers, config: Path) -> None:
    for query, rows in answers:
        console.print(query.question, style="bold")
        columns = list(rows[0]) if rows else []
        all_rows = command_line("query", "--config", str(config), "--example", query.name)
        print_rows(
            console, columns, [tuple(row.values()) for row in rows], MOST_PRINTED, remedy=f"`{all_rows}` shows all"
        )
        console.print()


def _next_steps(config: Path) -> list[str]:
    named = ("--config", str(config))
    return [
        command_line("tables", *named),
        command_line("query", *named, "--list-examples"),
        command_line("query", *named, "SELECT title, published_on FROM publications LIMIT 10"),
        command_line("snapshots", "show", TENANT, *named),
    ]
