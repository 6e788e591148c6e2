"""`bookferry init`: writes a first configuration."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from rich.console import Console

from cli.output import Output, command_line
from pipelines.errors import ConfigurationError, ExitStatus
from pipelines.service_limits import REQUESTS_PER_MINUTE
from pipelines.settings.loading import CONFIG_FILE, load_settings
from pipelines.settings.tenant import TenantName

CONFIG = """\
# Bookferry's configuration. Secrets are named by environment variable, never written here.
data = {data}  # a folder, relative to this file
timezone = "UTC"  # of the nightly backup, such as "Europe/Vienna"
nightly_at = "02:00"
# personal_key_env = "BOOKFERRY_PERSONAL_KEY"  # a key to encrypt users' data with: docs/operating.md, "Personal data"

[tenants.{tenant}]
base_url = {base_url}
{sign_in}
requests_per_minute = {requests_per_minute}  # the service's limit for automated access
# record_url = "https://library.example.org/publications/{{id}}"  # the page of a record, for links in lists of issues

# [notify]  # addresses or commands to call when a backup has ended: docs/operating.md, "Notifications"
# success_env = "BACKUP_ALIVE"
# failure_env = "BACKUP_FAILED"

# [retention]  # which snapshots to keep; without it nothing is removed: docs/operating.md, "Retention"
# keep_daily = 7
# keep_weekly = 5
# keep_monthly = 12
"""


SIGN_IN = {
    "v2": """\
api = "v2"
username_env = "{variable}_USER"  # the environment variable that holds the user name
password_env = "{variable}_PASSWORD"
# session_cookie_env = "{variable}_SESSION"  # instead: the cookie _library_session of a signed-in browser""",
    "v3": """\
api = "v3"  # `bookferry login {tenant}` signs in
# client_id = "..."  # for a client that an administrator issued, with the variable that holds its secret:
# client_secret_env = "{variable}_CLIENT_SECRET\"""",
}


def write_config(path: Path, *, base_url: str, tenant: str, data: str, api: str, output: Output) -> ExitStatus:
    """Write a configuration that loads, and print the next steps."""
    try:
        TypeAdapter(TenantName).validate_python(tenant)
    except ValidationError:
        raise ConfigurationError(
            f"--tenant {tenant!r}: a tenant's name has only lower case letters, digits and _, and starts with a letter."
        ) from None
    if api not in SIGN_IN:
        raise ConfigurationError(f"--api {api}: there is no such version; say one of {', '.join(SIGN_IN)}.")
    variable = tenant.upper()
    sign_in = SIGN_IN[api].format(tenant=tenant, variable=variable)
    content = CONFIG.format(
        tenant=tenant,
        sign_in=sign_in,
        data=_toml(data),
        base_url=_toml(base_url),
        requests_per_minute=REQUESTS_PER_MINUTE,
    )
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError:
        raise ConfigurationError(
            f"{path} already exists and was left as it is. Edit it, or name another file with --config."
        ) from None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}.") from None
    try:
        load_settings(path)
    except ConfigurationError:
        path.unlink()
        raise
    variables = [f"{variable}_USER", f"{variable}_PASSWORD"] if api == "v2" else []
    config = ["--config", str(path)] if path != Path(CONFIG_FILE) else []
    backup, login = (command_line(name, tenant, *config) for name in ("backup", "login"))
    sign_in = f"export {' '.join(f'{variable}=...' for variable in variables)}" if variables else login
    document = {
        "config": str(path.absolute()),
        "tenant": tenant,
        "variables": variables,
        "next": backup if variables else login,
    }
    output.result(document, lambda console: _print_next(console, path, sign_in, backup))
    return ExitStatus.COMPLETE


def _print_next(console: Console, path: Path, sign_in: str, backup: str) -> None:
    console.print(f"Wrote {path}. Next:\n  1. correct base_url in it, if necessary\n  2. {sign_in}\n  3. {backup}")


def _toml(text: str) -> str:
    """A TOML string: that of JSON, without surrogate pairs, which TOML does not allow."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
