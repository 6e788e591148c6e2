"""`bookferry demo`: a real library on this machine is backed up, queried, migrated and verified."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from cli.backup import backup_tenant
from cli.command_lines import command_line, remember_config
from cli.migrate import apply_plan, make_plan, verify_plan
from cli.output import Answer, print_answer, say
from cli.query import query
from pipelines.errors import ConfigurationError, ExitStatus
from pipelines.examples import example
from pipelines.file_access import restrict_new_files
from pipelines.service.sandbox_process import CLIENT_ID, sandbox_process, store_sign_in
from pipelines.settings.config_file import CONFIG_FILE, load_settings
from pipelines.settings.settings import Settings
from pipelines.settings.storage import usable_folder

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

_SANDBOX = [
    *("--tenant", f"{TENANT}=real", "--tenant", f"{TARGET}=empty"),
    *("--requests-per-minute", str(REQUESTS_PER_MINUTE)),
    *("--port", "0"),
]

QUESTIONS = ("collection_by_decade", "gaps_by_kind", "possible_duplicates")
"""Queries of sql/examples that the demonstration runs."""

_NEXT_STEPS = (
    ("tables",),
    ("query", "--list-examples"),
    ("query", "SELECT title, published_on FROM publications LIMIT 10"),
    ("snapshots", "show", TENANT),
)
"""Commands for what is left of the demonstration."""

MOST_PRINTED = 15
"""Rows of each result on the terminal."""


def run(*, folder: Path, backup_only: bool, json: bool) -> Answer:
    """Start a sandbox; run the commands of a backup and of a migration; stop the sandbox. The files stay in `folder`."""
    restrict_new_files(None)
    config = _own_config(folder)
    remember_config(str(config))
    demonstration = _Demonstration(as_json=json)
    with sandbox_process(_SANDBOX) as ready:
        tenant = ready["tenants"][TENANT]
        say(
            f"A local replacement of the service runs at {ready['url']} with {tenant['publications']:,} real publications in a library of\n"
            f"version 2, and an empty one of version 3. It grants {REQUESTS_PER_MINUTE:,} requests a minute for this demonstration; the\n"
            "real service grants about 60.\n"
        )
        _write_config(config, tenant["base_url"], ready["tenants"][TARGET]["base_url"])
        os.environ["BOOKFERRY_DEMO_USER"], os.environ["BOOKFERRY_DEMO_PASSWORD"] = tenant["user"], tenant["password"]
        settings = load_settings(config)
        store_sign_in(settings, TARGET, ready, TARGET)
        backup = demonstration.step(("backup", TENANT), partial(backup_tenant, settings, TENANT))
        document = {**backup, "config": str(config.absolute())}
        for name in QUESTIONS:
            demonstration.show("", Text(example(name).question, "italic"))
            question = partial(query, example=name, limit=MOST_PRINTED, config=str(config))
            demonstration.step(("query", "--example", name, "--limit", str(MOST_PRINTED)), question)
        if not backup_only:
            document["migration"] = demonstration.migrate(settings)
    return Answer(document, _next_steps(config), demonstration.status)


def _next_steps(config: Path) -> Iterator[str]:
    yield f"\nThe libraries of the demonstration are gone. To explore what they left in {config.parent}/:"
    for words in _NEXT_STEPS:
        yield f"  {command_line(*words)}"
    remember_config(None)
    yield f"\nTo begin with a library of your own:\n  {command_line('init')}"


class _Demonstration:
    """The commands so far, each printed as a person would type it, with what it says."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self.status = ExitStatus.COMPLETE

    def step(self, words: Sequence[str], command: Callable[[], Answer]) -> Mapping[str, Any]:
        """Run a command. Returns its document."""
        self.show("", Text.assemble(("$ ", "green"), (command_line(*words), "bold")))
        answer = command()
        self.show(*answer.lines)
        self.status = self.status or answer.status
        return answer.document or {}

    def migrate(self, settings: Settings) -> dict[str, Mapping[str, Any]]:
        """Plan, apply, verify; a second plan has nothing left to write. Returns the document of each step."""
        plan_words = ("migrate", "plan", TENANT, TARGET, "--newest")
        plan = partial(make_plan, settings, source=TENANT, target=TARGET, newest=True)
        steps = {"plan": self.step(plan_words, plan)}
        name = steps["plan"]["plan"]
        steps["apply"] = self.step(("migrate", "apply", name), partial(apply_plan, settings, plan=name))
        verify = partial(verify_plan, settings, plan=name, contents=True)
        steps["verify"] = self.step(("migrate", "verify", name, "--contents"), verify)
        steps["second_plan"] = self.step(plan_words, plan)
        if steps["second_plan"]["requests"]:
            self.status = self.status or ExitStatus.DIFFERENCES
        return steps

    def show(self, *lines: RenderableType) -> None:
        """Print lines, unless the answer is a document."""
        if not self._as_json:
            print_answer(Answer(None, lines), as_json=False)


def _own_config(folder: Path) -> Path:
    """Path of the demonstration's configuration. A file that a person wrote there is not touched."""
    config = folder / CONFIG_FILE
    usable_folder(config, "data", folder.resolve())
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
