"""Where things are kept: what `data`, `work` and other folders of bookferry.toml mean on this machine."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from pipelines.errors import ConfigurationError
from pipelines.settings.addresses import checked_bucket

POSTGRES_TIMEOUTS = {
    "connect_timeout": "10",
    "application_name": "bookferry",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
"""Connection parameters of libpq: a server that stops responding is noticed within half a minute."""


def _free_schema(name: str) -> str:
    if name.startswith("pg_") or name in {"public", "information_schema"}:
        raise ValueError("is a schema of Postgres itself; name one of its own for the views")
    return name


class PostgresSettings(BaseModel):
    """`[postgres]`: how the staged tables are kept in the database that `postgres_env` names.

    `load = false`: they are not, sign-ins only. `schema`: where the views over all libraries are. `wait_seconds`: for people who read.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    load: bool = Field(default=True, strict=True)
    schema_: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$"), AfterValidator(_free_schema)] = Field(
        default="library", alias="schema"
    )
    wait_seconds: int = Field(default=60, ge=0, le=86_400, strict=True)


def storage_locations(path: Path, data: str, work: str | None, environ: Mapping[str, str]) -> tuple[str | None, Path]:
    """The bucket that `data` names, if it does, and the folder on this machine: of all data, or of the work on it."""
    if "://" not in data:
        if work is not None:
            raise ConfigurationError(
                f"{path}: work: belongs to data in a bucket; a folder of data holds its own work. Remove it."
            )
        return None, folder_of(path, "data", data)
    try:
        bucket = checked_bucket(data)
    except ValueError as error:
        raise ConfigurationError(f"{path}: data: {error}.") from None
    if work is not None:
        return bucket, folder_of(path, "work", work)
    try:
        return bucket, state_home(environ) / _folder_name(bucket)
    except RuntimeError:
        raise ConfigurationError(
            f'{path}: this user has no home folder to keep the work on a backup in. Name a folder with `work = "..."` at the top of the '
            "file."
        ) from None


def folder_of(path: Path, key: str, name: str) -> Path:
    """A folder of the file, which relative names start from."""
    try:
        return (path.absolute().parent / Path(name).expanduser()).resolve()
    except (ValueError, OSError, RuntimeError) as error:
        raise ConfigurationError(f"{path}: {key}: {name!r} is no folder ({error}). Name a folder.") from None


def state_home(environ: Mapping[str, str]) -> Path:
    """The user's folder for state that belongs into no folder of data; a `RuntimeError` where the user has no home folder."""
    state = environ.get("XDG_STATE_HOME", "")
    if state.startswith("/"):  # the XDG specification: relative paths are to be ignored
        return Path(state) / "bookferry"
    return Path.home() / ".local" / "state" / "bookferry"


def _folder_name(bucket: str) -> str:
    """A name of its own for each address of a bucket, which people can still read."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", bucket.partition("://")[2])[:40].strip("-")
    return f"{readable}-{hashlib.sha256(bucket.encode()).hexdigest()[:8]}"
