"""Commands about the sign-in to a library: login, whoami. Each imports what it runs when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.boundary import command
from cli.commands import completion
from cli.commands.options import ConfigOption, JsonOption, settings_of
from cli.output import Output
from pipelines.errors import ExitStatus

STOPPED = (
    "Stopped before anybody was signed in. An earlier sign-in stays as it is. To sign in, run the same command again."
)


@command("cli.login", STOPPED)
def login(  # noqa: PLR0917  one parameter for each option
    tenant: Annotated[str, typer.Argument(autocompletion=completion.tenants, help="A v3 tenant of bookferry.toml.")],
    purpose: Annotated[
        str | None,
        typer.Option("--for", help="Request only the scopes of this job: backup or migration.", metavar="JOB"),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address and read the answer from standard input.")
    ] = False,
    new_client: Annotated[
        bool, typer.Option("--new-client", help="Register a new client. A library accepts few registrations a day.")
    ] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Sign in to a v3 library in your browser. Bookferry stores the sign-in, renews it, and uses it for all jobs."""
    from cli.login import log_in

    return log_in(
        settings_of(config),
        tenant,
        Output(as_json=json),
        purpose=purpose,
        browser=not no_browser,
        new_client=new_client,
    )


@command("cli.whoami")
def whoami(
    tenant: Annotated[str, typer.Argument(autocompletion=completion.tenants, help="A tenant of bookferry.toml.")],
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Show who is signed in to a library, what the sign-in allows, and when it is renewed."""
    from cli.whoami import show_sign_in

    return show_sign_in(settings_of(config), tenant, Output(as_json=json))
