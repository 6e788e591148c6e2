"""Opens the catalogue of Iceberg tables that the settings name, and turns its errors into ours.

PyIceberg's own configuration (`.pyiceberg.yaml`) is not read: what bookferry.toml says is all there is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.errors import BookferryError, ConfigurationError, StorageError
from pipelines.file_access import make_file, make_folder
from pipelines.settings.postgres_address import SCHEME, PostgresAddress
from pipelines.settings.settings import Settings
from pipelines.state.postgres_errors import without

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

_SECRET = re.compile("password|secret|token|credential")
"""Names of properties that no message may show."""

INSTALL = 'pip install "bookferry[iceberg]"'

NAME = "bookferry"
"""The catalogue's: a database can hold several."""

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
    """What is needed to open the catalogue."""

    kind: str
    namespace: str
    properties: Mapping[str, str]
    place: str
    """The catalogue's address without user, password and query, for people."""
    secrets: Sequence[str]
    """The values that no message may show."""


def catalogue_settings(settings: Settings) -> CatalogueSettings:
    """The settings of the catalogue. Raises `ConfigurationError` if there is none, or if PyIceberg cannot read the kind of bucket."""
    chosen = settings.iceberg
    if chosen is None:
        raise ConfigurationError(f"{settings.path}: there are no Iceberg tables, because it has no table [iceberg].")
    if settings.bucket is not None and settings.bucket.startswith("az:"):
        raise ConfigurationError(
            f"{settings.path}: [iceberg] needs data in a folder, s3:// or gs://; PyIceberg has no az://."
        )
    named = chosen.secrets(settings.path)
    if chosen.type == "sql" and "uri" not in named:
        named["uri"] = f"sqlite:///{settings.data / SQLITE}"
    place, password = f"the catalogue of type {chosen.type}", ""
    try:
        if chosen.type == "sql" and SCHEME.match(named["uri"]):  # SQLAlchemy would look for psycopg2
            database = PostgresAddress.parse(named["uri"])
            named["uri"], place, password = database.for_sqlalchemy, database.place, database.secret
        elif named.get("uri"):
            from sqlalchemy import URL, make_url  # noqa: PLC0415  a tenth of a second

            url = make_url(named["uri"])
            shown = URL.create(url.get_backend_name(), host=url.host, port=url.port, database=url.database)
            place, password = str(shown), str(url.password or "")
    except Exception:  # noqa: BLE001  whatever a library says about it may show a password
        raise ConfigurationError(
            f"{settings.path}: iceberg.uri_env names the environment variable {chosen.uri_env}, whose value is not an address such as "
            "postgresql://user:password@host/database. Correct it: encode / ? @ and % as %2F, %3F, %40 and %25 in its parts."
        ) from None
    warehouse = f"{settings.bucket or f'file://{settings.data}'}/{WAREHOUSE}"
    properties = {
        **_bucket_properties(),
        **_RETRIES,
        **({"warehouse": warehouse} if chosen.type == "sql" else {}),  # other catalogues decide themselves
        **chosen.properties,
        **named,
    }
    secrets = [value for key, value in properties.items() if _SECRET.search(key)] + [password]
    return CatalogueSettings(chosen.type, chosen.namespace, properties, place, secrets)


def _bucket_properties() -> dict[str, str]:
    variables = {"s3.endpoint": _ENDPOINTS, "s3.region": _REGIONS, **_CREDENTIALS}
    properties = {
        key: next((os.environ[name] for name in names if os.environ.get(name)), "") for key, names in variables.items()
    }
    return {key: value for key, value in properties.items() if value}


def open_catalogue(settings: CatalogueSettings, folder: Path) -> Catalog:
    """Connect to the catalogue. `folder`: the data folder on this machine, which a SQLite file may be in."""
    try:
        from pyiceberg.catalog import AVAILABLE_CATALOGS, CatalogType  # noqa: PLC0415  an extra, and half a second
    except ImportError:
        raise ConfigurationError(f"[iceberg] needs PyIceberg, which is not installed. Run `{INSTALL}`.") from None
    os.environ.setdefault(_CHECKSUMS, "when_required")
    make_folder(folder)
    if _is_in(folder, settings):
        make_file(folder / SQLITE)
    return AVAILABLE_CATALOGS[CatalogType(settings.kind)](NAME, {**settings.properties})


def check_catalogue(settings: CatalogueSettings, folder: Path) -> None:
    """Raises if the catalogue cannot be used. One that is a file in the data folder is not created."""
    if _is_in(folder, settings) and not (folder / SQLITE).exists():
        return
    with catalogue_errors("Opening", settings, "bookferry doctor"), open_catalogue(settings, folder) as catalog:
        catalog.list_namespaces()


def _is_in(folder: Path, settings: CatalogueSettings) -> bool:
    """Whether the catalogue is a SQLite file in the data folder."""
    return settings.properties.get("uri") == f"sqlite:///{folder / SQLITE}"


@contextmanager
def catalogue_errors(trying: str, settings: CatalogueSettings, again: str) -> Iterator[None]:
    """Turns whatever PyIceberg, its driver and its file access raise into a `StorageError`: they have no error in common."""
    try:
        yield
    except BookferryError:
        raise
    except Exception as error:  # noqa: BLE001  see above
        text = (str(error).splitlines() or [""])[0]
        for secret in settings.secrets:
            text = without(text, secret)
        remedy = (
            "This is a mistake in Bookferry or in PyIceberg: please report it"
            if isinstance(error, AttributeError | LookupError | NameError | TypeError)
            else f"If that is mended, run `{again}`"
        )
        raise StorageError(
            f"{trying} the Iceberg tables ({settings.place}) failed: {type(error).__name__}: {text[:500]}. {remedy}."
        ) from None  # what it was made from may hold a secret
