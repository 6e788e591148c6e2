"""The folders of bookferry.toml: what `data`, `work` and other paths mean on this machine; and where the staged tables go."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from pipelines.errors import ConfigurationError
from pipelines.settings.addresses import checked_bucket
from pipelines.settings.value_types import VariableName, variable_value

POSTGRES_SESSION = {
    "client_encoding": "UTF8",
    "connect_timeout": "10",
    "application_name": "bookferry",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
"""Connection parameters of libpq: a server that stops responding is noticed within half a minute, and texts of a database with the encoding
SQL_ASCII are read as texts, not as bytes."""


def _free_schema(name: str) -> str:
    if name.startswith("pg_") or name in {"public", "information_schema"}:
        raise ValueError("is a schema of Postgres itself; name another one for the views")
    return name


class PostgresSettings(BaseModel):
    """`[postgres]`: how tables are staged into the database that `postgres_env` names.

    `load = false`: they are not; the database has sign-ins only. `schema`: the schema of the views over all libraries.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    load: bool = Field(default=True, strict=True)
    schema_: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$"), AfterValidator(_free_schema)] = Field(
        default="library", alias="schema"
    )


_SECRET = re.compile(r"(?i)password|secret|token|credential|uri")


def _no_secrets(properties: dict[str, str]) -> dict[str, str]:
    for name in properties:
        if _SECRET.search(name):
            raise ValueError(f"has {name}, which may be a secret: name the variable that holds it in properties_env")
    return properties


class IcebergSettings(BaseModel):
    """`[iceberg]`: the catalogue in which the staged tables are tables of Apache Iceberg.

    `type`: the kind of catalogue, in PyIceberg's words. `uri_env`: the variable with its address; without one, it is a SQLite file in the
    data folder. `namespace`: the namespace of the tables. `properties`: further properties of PyIceberg's catalogue and file access, such
    as `warehouse`. `properties_env`: property → the variable that holds it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["sql", "rest", "hive", "glue", "dynamodb", "bigquery"] = "sql"
    uri_env: VariableName | None = None
    namespace: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")] = "library"
    properties: Annotated[dict[str, str], AfterValidator(_no_secrets)] = Field(default_factory=dict)
    properties_env: dict[str, VariableName] = Field(default_factory=dict)

    @property
    def variables(self) -> dict[str, str]:
        """Property → the variable that holds it, the address among them."""
        return {**({"uri": self.uri_env} if self.uri_env else {}), **self.properties_env}

    def check_shared(self, path: Path, postgres_env: str | None) -> None:
        """Raise `ConfigurationError` where several machines work on the data, and each would have a catalogue of its own."""
        if self.type == "sql" and self.uri_env is None:
            raise ConfigurationError(
                f"{path}: iceberg: without uri_env the catalogue is a file on this machine, and several machines work on this data: a "
                "machine would not know what another one registered, or removed. Name a database for all of them, for example "
                f'uri_env = "{postgres_env or "BOOKFERRY_POSTGRES"}".'
            )

    def secrets(self, path: Path) -> dict[str, str]:
        """Returns the properties that variables hold. A missing variable is a `ConfigurationError`."""
        where = f"{path}: iceberg"
        return {
            key: variable_value(variable, f"{where}.{'uri_env' if key == 'uri' else f'properties_env.{key}'}")
            for key, variable in self.variables.items()
        }


def storage_locations(path: Path, data: str, work: str | None) -> tuple[str | None, Path]:
    """Returns the bucket that `data` names, if any, and the folder on this machine: for all data, or for the working files."""
    if "://" not in data:
        if work is not None:
            raise ConfigurationError(
                f"{path}: work: is for data in a bucket only; a data folder contains its own working files. Remove it."
            )
        return None, usable_folder(path, "data", folder_of(path, "data", data))
    try:
        bucket = checked_bucket(data)
    except ValueError as error:
        raise ConfigurationError(f"{path}: data: {error}.") from None
    if work is not None:
        return bucket, usable_folder(path, "work", folder_of(path, "work", work))
    return bucket, usable_folder(path, "work", state_home(path) / _folder_name(bucket))


def folder_of(path: Path, key: str, name: str) -> Path:
    """Returns a folder of the file as an absolute path; relative names start at the file's folder."""
    try:
        return (path.absolute().parent / Path(name).expanduser()).resolve()
    except (ValueError, OSError, RuntimeError) as error:
        raise ConfigurationError(f"{path}: {key}: {name!r} is not a folder ({error}). Name a folder.") from None


def usable_folder(path: Path, key: str, folder: Path) -> Path:
    """The folder, if DuckDB and Dagster's SQLite can open files in it; `ConfigurationError` otherwise."""
    if any(sign in str(folder) for sign in "?\\"):
        raise ConfigurationError(
            f"{path}: {key}: {folder}: DuckDB and SQLite cannot open files in a folder with ? or \\ in its path. Name another folder as "
            f"`{key}`."
        )
    return folder


def state_home(path: Path) -> Path:
    """Returns the user's folder for state outside the data folder."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if state.startswith("/"):  # the XDG specification: relative paths are to be ignored
        return Path(state) / "bookferry"
    try:
        return Path.home() / ".local" / "state" / "bookferry"
    except RuntimeError:
        raise ConfigurationError(
            f"{path}: this user has no home folder for sign-ins and working files. Name a folder in the environment variable "
            "XDG_STATE_HOME."
        ) from None


def _folder_name(bucket: str) -> str:
    """Returns a unique, readable name for a bucket's address."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", bucket.partition("://")[2])[:40].strip("-")
    return f"{readable}-{hashlib.sha256(bucket.encode()).hexdigest()[:8]}"
