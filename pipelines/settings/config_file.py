"""The keys of bookferry.toml. Finds the file, validates it and returns `Settings`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from pipelines.errors import ConfigurationError
from pipelines.settings.identifier_types import IdentifierSettings, TypeName, check_field_owners
from pipelines.settings.retention_and_notify import NotifySettings, RetentionSettings
from pipelines.settings.settings import Settings
from pipelines.settings.storage import IcebergSettings, PostgresSettings, folder_of, storage_locations
from pipelines.settings.tenant import TenantName, TenantSettings
from pipelines.settings.validation_messages import explain
from pipelines.settings.value_types import TimeZone, VariableName
from pipelines.settings.write_requests import RequestForm

CONFIG_VARIABLE = "BOOKFERRY_CONFIG"


CONFIG_FILE = "bookferry.toml"


class _ConfigFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    data: str = "library-data"
    work: str | None = None
    postgres_env: VariableName | None = None
    state: Literal["local", "postgres"] = "local"
    staging: PostgresSettings = Field(default_factory=PostgresSettings, alias="postgres")
    iceberg: IcebergSettings | None = None
    personal_key_env: VariableName | None = None
    group: Annotated[str, StringConstraints(min_length=1)] | None = None
    tokens: str | None = None
    timezone: TimeZone = "UTC"
    nightly_at: Annotated[str, StringConstraints(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")] = "02:00"
    retention: RetentionSettings | None = None
    notify: NotifySettings = Field(default_factory=NotifySettings)
    identifiers: Annotated[dict[TypeName, IdentifierSettings], AfterValidator(check_field_owners)] = Field(
        default_factory=dict
    )
    tenants: dict[TenantName, TenantSettings] = Field(default_factory=dict)


def find_config(config: Path | None = None) -> Path:
    """Returns the configuration file: `config` (--config), else $BOOKFERRY_CONFIG, else bookferry.toml in the working folder."""
    if config is not None:
        path, source = config, "--config"
    elif os.environ.get(CONFIG_VARIABLE):
        path, source = Path(os.environ[CONFIG_VARIABLE]), f"${CONFIG_VARIABLE}"
    else:
        path, source = Path(CONFIG_FILE), "the working folder"
    if not path.is_file():
        raise ConfigurationError(
            f"{path}: no such configuration file (named by {source}). "
            "Make one with `bookferry init`, or name another with --config or in the environment variable BOOKFERRY_CONFIG."
        )
    return path.absolute()


def load_settings(path: Path) -> Settings:
    """Read and check one configuration file. Relative paths in it are relative to the file."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        checked = _ConfigFile.model_validate(content)
        values = {**dict(checked), "identifiers": {name: dict(table) for name, table in checked.identifiers.items()}}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read ({error}).") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: is not valid TOML: {error}. Correct that line.") from None
    except ValidationError as error:
        raise ConfigurationError(explain(path, error, _known_keys)) from None
    data, work, tokens = (values.pop(name) for name in ("data", "work", "tokens"))
    bucket, folder = storage_locations(path, data, work)
    if checked.state == "postgres" and bucket is not None and checked.iceberg is not None:
        checked.iceberg.check_shared(path, checked.postgres_env)
    if bucket is None and checked.iceberg is not None and "#" in str(folder):
        raise ConfigurationError(
            f"{path}: data: {folder}: the addresses of Iceberg tables cannot have # in them. Name another folder as `data`."
        )
    tokens_folder = None if tokens is None else folder_of(path, "tokens", tokens)
    return Settings(path.absolute(), folder, bucket=bucket, tokens=tokens_folder, **values)


def _known_keys(table: Sequence[str]) -> Iterable[str]:
    models: dict[str, type[BaseModel]] = {
        "retention": RetentionSettings,
        "notify": NotifySettings,
        "postgres": PostgresSettings,
        "iceberg": IcebergSettings,
        "requests": RequestForm,
    }
    inside = table[2:] if table[:1] == ["tenants"] else table
    model = models.get(inside[0], TenantSettings) if inside else TenantSettings
    if table[:1] == ["identifiers"]:
        model = IdentifierSettings
    elif not table:
        model = _ConfigFile
    return [field.alias or name for name, field in model.model_fields.items()]
