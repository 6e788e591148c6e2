"""Opens the catalogue of Iceberg tables that the settings name, and turns its errors into ours.

PyIceberg's own configuration (`.pyiceberg.yaml`) is not read: what bookferry.toml says is all there is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pipelines.errors import BookferryError, ConfigurationError, StorageError
from pipelines.settings.settings import Settings
from pipelines.settings.storage import POSTGRES_TIMEOUTS

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

INSTALL = 'pip install "bookferry[iceberg]"'

SQLITE = "iceberg.db"
"""The catalogue's file in the data folder, if no other is named."""

WAREHOUSE = "iceberg"
"""The folder of the tables' metadata, beside `snapshots`."""

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_CREDENTIALS = {
    "s3.access-key-id": ("AWS_ACCESS_KEY_ID",),
    "s3.secret-access-key": ("AWS_SECRET_ACCESS_KEY",),
    "s3.session-token": ("AWS_SESSION_TOKEN",),
}
"""Property of PyIceberg → the variables of the bucket, as for the snapshots. Without variables, Amazon's usual sources are asked."""
_RETRIES = {"s3.retry-strategy-impl": "pipelines.store.iceberg.retries.PatientRetries"}
_CHECKSUMS = "AWS_REQUEST_CHECKSUM_CALCULATION"
"""Amazon's library in pyarrow sends checksums behind the content, unless this variable says otherwise; a property for that there is none.
Services such as radosgw 16 answer 411 (Length Required)."""


@dataclass(frozen=True)
class CatalogueSettings:
    """What is needed to open the catalogue. `warehouse` is None if the catalogue itself decides where metadata is stored."""

    kind: str
    name: str
    namespace: str
    warehouse: str | None
    properties: Mapping[str, str]

    @property
    def place(self) -> str:
        """The catalogue's address without user, password and query, for people."""
        address = urlsplit(self.properties.get("uri", ""))
        host = (address.hostname or "") + (f":{address.port}" if address.port else "")
        scheme = address.scheme.partition("+")[0]
        return f"{scheme}://{host}{address.path}" if scheme else f"the catalogue {self.name} ({self.kind})"

    @property
    def secrets(self) -> list[str]:
        """The values that no message may show."""
        found = [value for key, value in self.properties.items() if re.search(r"password|secret|token|credential", key)]
        password = urlsplit(self.properties.get("uri", "")).password
        return [*found, *([password] if password else [])]


def catalogue_settings(settings: Settings, environ: Mapping[str, str] = os.environ) -> CatalogueSettings:
    """The settings of the catalogue. Raises `ConfigurationError` if there is none, or if PyIceberg cannot read the kind of bucket."""
    chosen = settings.iceberg
    if chosen is None:
        raise ConfigurationError(f"{settings.path}: there are no Iceberg tables, because it has no table [iceberg].")
    if settings.bucket is not None and settings.bucket.startswith("az:"):
        raise ConfigurationError(
            f"{settings.path}: [iceberg] needs data in a folder, s3:// or gs://; PyIceberg has no az://."
        )
    named = chosen.secrets(settings.path, environ)
    if chosen.type == "sql" and "uri" not in named:
        named["uri"] = f"sqlite:///{settings.data / SQLITE}"
    try:
        _ = urlsplit(named.get("uri", "")).port
        if chosen.type == "sql":
            named["uri"] = _driver(named["uri"])
    except Exception:  # noqa: BLE001  whatever a library says about it may show a password
        raise ConfigurationError(
            f"{settings.path}: iceberg.uri_env names the environment variable {chosen.uri_env}, whose value is not an address such as "
            "postgresql://host/database. Correct it."
        ) from None
    warehouse = chosen.warehouse
    if warehouse is None and chosen.type == "sql":
        warehouse = f"{settings.bucket or f'file://{settings.data}'}/{WAREHOUSE}"
    properties = {
        **_bucket_properties(environ),
        **_RETRIES,
        **({"warehouse": warehouse} if warehouse else {}),
        **chosen.properties,
        **named,
    }
    return CatalogueSettings(chosen.type, chosen.name, chosen.namespace, warehouse, properties)


def _driver(address: str) -> str:
    """The address with the driver that Bookferry has, psycopg 3: SQLAlchemy would look for psycopg2. A silent server is noticed."""
    from sqlalchemy import make_url  # noqa: PLC0415  a tenth of a second

    url = make_url(address)
    if url.drivername not in {"postgres", "postgresql"}:
        return address
    url = url.set(drivername="postgresql+psycopg")
    return url.update_query_dict({**POSTGRES_TIMEOUTS, **url.query}).render_as_string(hide_password=False)


def _bucket_properties(environ: Mapping[str, str]) -> dict[str, str]:
    variables = {"s3.endpoint": _ENDPOINTS, "s3.region": _REGIONS, **_CREDENTIALS}
    found = {key: next((environ[name] for name in names if environ.get(name)), "") for key, names in variables.items()}
    return {key: value for key, value in found.items() if value}


def open_catalogue(settings: CatalogueSettings, folder: Path) -> Catalog:
    """Connect to the catalogue. `folder`: the data folder on this machine, which a SQLite file may be in."""
    try:
        from pyiceberg.catalog import AVAILABLE_CATALOGS, CatalogType  # noqa: PLC0415  an extra, and half a second
    except ImportError:
        raise ConfigurationError(f"[iceberg] needs PyIceberg, which is not installed. Run `{INSTALL}`.") from None
    os.environ.setdefault(_CHECKSUMS, "when_required")
    folder.mkdir(parents=True, exist_ok=True)
    return AVAILABLE_CATALOGS[CatalogType(settings.kind)](settings.name, {**settings.properties})


def check_catalogue(settings: CatalogueSettings, folder: Path) -> None:
    """Raises if the catalogue cannot be used. One that is a file in the data folder is not created."""
    if settings.properties.get("uri") == f"sqlite:///{folder / SQLITE}" and not (folder / SQLITE).exists():
        return
    with catalogue_errors("Opening", settings, "bookferry doctor"), open_catalogue(settings, folder) as catalog:
        catalog.list_namespaces()


@contextmanager
def catalogue_errors(trying: str, settings: CatalogueSettings, again: str) -> Iterator[None]:
    """Turns whatever PyIceberg, its driver and its file access raise into a `StorageError`: they have no error in common."""
    try:
        yield
    except BookferryError:
        raise
    except Exception as error:  # noqa: BLE001  see above
        text = (str(error).splitlines() or [""])[0][:500]
        for secret in settings.secrets:
            text = text.replace(secret, "[redacted]")
        raise StorageError(
            f"{trying} the Iceberg tables ({settings.place}) failed: {type(error).__name__}: {text}. If that is mended, run `{again}`."
        ) from None  # what it was made from may hold a secret
