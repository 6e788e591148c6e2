"""`bookferry init`: writes a first configuration, and adds libraries to it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from cli.command_lines import command_line
from cli.output import Answer
from pipelines.errors import ConfigurationError
from pipelines.records.values import valid_text
from pipelines.service_limits import REQUESTS_PER_MINUTE
from pipelines.settings.config_file import CONFIG_FILE, load_settings
from pipelines.settings.tenant import TenantName

CONFIG = """\
# Bookferry's configuration. Secrets are named by environment variable, never written here.
data = {data}  # a folder, relative to this file
timezone = "UTC"  # of the nightly backup, such as "Europe/Vienna"
nightly_at = "02:00"
# personal_key_env = "BOOKFERRY_PERSONAL_KEY"  # a key to encrypt users' data with: docs/operating.md, "Personal data"

{library}
# [notify]  # commands, or variables that hold addresses, to call when a backup has ended: docs/operating.md, "Notifications"
# success = "BACKUP_ALIVE"
# failure = "BACKUP_FAILED"

# [retention]  # which snapshots to keep; without it nothing is removed: docs/operating.md, "Retention"
# keep_daily = 7
# keep_weekly = 5
# keep_monthly = 12
"""

LIBRARY = """\
[tenants.{tenant}]
base_url = {base_url}
{sign_in}
requests_per_minute = {requests_per_minute}  # the service's limit for automated access
# record_url = "https://library.example.org/publications/{{id}}"  # the page of a record, for links in lists of issues
"""

TENANT = "library"
"""Name of the library in a new file."""

DATA = "library-data"
EXAMPLE_URL = "https://library.example.org"

SIGN_IN = {
    "v2": """\
api = "v2"
username_env = "{variable}_USER"  # the environment variable that holds the user name
password_env = "{variable}_PASSWORD"
# password_command = ["pass", "show", "{tenant}"]  # instead: a command that prints the password
# session_cookie_env = "{variable}_SESSION"  # instead: the cookie _library_session of a signed-in browser""",
    "v3": """\
api = "v3"  # `bookferry login {tenant}` signs in
# client_id = "..."  # for a client that an administrator issued, with the variable that holds its secret:
# client_secret_env = "{variable}_CLIENT_SECRET\"""",
}


def write_config(config: str | None, *, tenant: str | None, base_url: str | None, api: str, data: str | None) -> Answer:
    """Write a configuration that loads, or add the library to the one that is there, and say the next steps."""
    path = Path(config or CONFIG_FILE)
    library = _library(tenant or TENANT, base_url or EXAMPLE_URL, api)
    try:
        if path.exists():
            _check_addition(path, tenant, data)
            first_line = f"Added '{tenant}' to {path}."
            _write(path, path.read_bytes().rstrip() + b"\n\n" + library.encode())
        else:
            first_line = f"Wrote {path}."
            _write(path, CONFIG.format(data=_toml(data or DATA), library=library).encode())
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}.") from None
    return _next_steps(path, tenant or TENANT, base_url, api, first_line)


def _library(tenant: str, base_url: str, api: str) -> str:
    """The table of a library in bookferry.toml. Raises `ConfigurationError` for a name that cannot be."""
    try:
        TypeAdapter(TenantName).validate_python(tenant)
    except ValidationError:
        raise ConfigurationError(
            f"--tenant {tenant!r}: a tenant's name has only lower case letters, digits and _, and starts with a letter."
        ) from None
    return LIBRARY.format(
        tenant=tenant,
        base_url=_toml(base_url),
        sign_in=SIGN_IN[api].format(tenant=tenant, variable=tenant.upper()),
        requests_per_minute=REQUESTS_PER_MINUTE,
    )


def _check_addition(path: Path, tenant: str | None, data: str | None) -> None:
    """Raise for a library that cannot be added to a configuration."""
    if tenant is None:
        raise ConfigurationError(
            f"{path} already exists and was left as it is. To add a library to it: "
            "`bookferry init --tenant NAME --base-url ADDRESS`. For another file, name it with --config."
        )
    if data is not None:
        raise ConfigurationError(
            f"{path} already says where the data is, and was left as it is. Leave --data out to add '{tenant}' to it."
        )
    if tenant in load_settings(path).tenants:
        raise ConfigurationError(f"{path} already has a library '{tenant}' and was left as it is. Edit it there.")


def _write(path: Path, content: bytes) -> None:
    """Write a configuration that loads, or leave it as it is. It keeps its permissions."""
    real = path.resolve()
    changed = real.with_name(f".{real.name}.{os.getpid()}")
    try:
        if real.exists():
            shutil.copy2(real, changed)
        changed.write_bytes(content)
        load_settings(changed)
        changed.replace(real)
    except ConfigurationError as error:
        message = str(error).replace(str(changed), str(path))
        raise ConfigurationError(f"{path} was left as it is: with this it would not be valid. {message}") from None
    finally:
        changed.unlink(missing_ok=True)


def _next_steps(path: Path, tenant: str, base_url: str | None, api: str, first_line: str) -> Answer:
    variables = [f"{tenant.upper()}_{name}" for name in ("USER", "PASSWORD")] if api == "v2" else []
    sign_in = (
        f"export {' '.join(f'{variable}=...' for variable in variables)}"
        if variables
        else command_line("login", tenant)
    )
    steps = [] if base_url else ["write the address of your library into it, as base_url"]
    steps += [sign_in, command_line("doctor", tenant), command_line("backup", tenant)]
    document = {
        "config": str(path.absolute()),
        "tenant": tenant,
        "variables": variables,
        "next": command_line("backup", tenant) if variables else sign_in,
    }
    return Answer(
        document, [f"{first_line} Next:", *(f"  {number}. {step}" for number, step in enumerate(steps, start=1))]
    )


def _toml(text: str) -> str:
    """A TOML string: that of JSON, without surrogate pairs, which TOML does not allow."""
    if valid_text(text) != text:
        raise ConfigurationError(
            f"{text!r} is not text in UTF-8, as everything in bookferry.toml is: write it otherwise."
        )
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
