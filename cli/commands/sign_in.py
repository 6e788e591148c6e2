"""Commands about the sign-in to a library: login, whoami. Each names the function that answers it."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from cli import completion
from cli.boundary import command
from cli.options import Tenant

STOPPED = (
    "Stopped before anybody was signed in. An earlier sign-in stays as it is. To sign in, run the same command again."
)


@command("cli.login:log_in", stopped=STOPPED)
def login(
    tenant: Annotated[str, typer.Argument(autocompletion=completion.tenants, help="A v3 tenant of bookferry.toml.")],
    purpose: Annotated[
        Literal["backup", "migration"] | None,
        typer.Option("--for", help="Request only the scopes of this job: backup or migration.", metavar="JOB"),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address and read the answer from standard input.")
    ] = False,
    new_client: Annotated[
        bool, typer.Option("--new-client", help="Register a new client. A library accepts few registrations a day.")
    ] = False,
) -> None:
    """Sign in to a v3 library in your browser. Bookferry stores the sign-in, renews it, and uses it for all jobs."""


@command("cli.whoami:show_sign_in")
def whoami(
    tenant: Tenant,
) -> None:
    """Show who is signed in to a library, what the sign-in allows, and when it was renewed."""
