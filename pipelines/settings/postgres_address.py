"""The address of a Postgres database, read once for all drivers: each has other rules for blanks and encoded characters (RFC 3986).

What a driver gets are libpq's parameters, so that none reads the address, and none can quote a part of it in a message.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote, urlencode

from pipelines.errors import ConfigurationError
from pipelines.settings.storage import POSTGRES_SESSION

SCHEME = re.compile(r"(?i:postgres(?:ql)?(?:\+\w+)?)://")
"""How an address of Postgres begins; some name a driver."""

_ADDRESS = re.compile(rf"{SCHEME.pattern}(?:([^/?]*)@)?([^?@]*)(?:\?(.*))?")
"""Sign-in, hosts and database, parameters. No name of a database has a plain `@`, as libpq would allow: what seems to be one may be the
rest of a password with a `/`."""

_SIGN_IN = frozenset({"user", "password"})
"""Parameters that may have a plain `@`, as names of accounts do; in others it is the end of a password with a `?`."""


@dataclass(frozen=True)
class PostgresAddress:
    """`parameters`: those of libpq, decoded. `conninfo`: the same, with timeouts, as libpq reads them.

    `place`: the address without user and password, for people.
    """

    parameters: dict[str, str]
    conninfo: str
    place: str

    @classmethod
    def parse(cls, address: str) -> Self:
        """Reads an address. Raises `ConfigurationError`, without a part of it in the message."""
        from psycopg import ProgrammingError  # noqa: PLC0415  most settings have no database
        from psycopg.conninfo import conninfo_to_dict, make_conninfo  # noqa: PLC0415

        refused = ConfigurationError(
            "The variable that postgres_env names holds no address of Postgres. Write postgresql://, then user:password@host/database; "
            "encode / ? @ and % as %2F, %3F, %40 and %25 in its parts; after a ? come parameters that Postgres knows."
        )
        match = _ADDRESS.fullmatch(address.strip())
        options = match[3] or "" if match else ""
        if match is None or any("@" in each and each.partition("=")[0] not in _SIGN_IN for each in options.split("&")):
            raise refused
        sign_in = f"{quote(match[1], safe=':%')}@" if match[1] else ""
        try:
            read = conninfo_to_dict(f"postgresql://{sign_in}{match[2]}?{options.replace('@', '%40')}")
            parameters = {name: str(value) for name, value in read.items()}
            conninfo = make_conninfo(**{**POSTGRES_SESSION, **parameters})
        except (ProgrammingError, UnicodeError):  # an encoding, or a parameter, that libpq does not know
            raise refused from None
        if not re.fullmatch(r"[0-9,]*", parameters.get("port", "")):
            raise refused
        return cls(parameters, conninfo, _place(parameters))

    @property
    def secret(self) -> str:
        """The password; empty where neither the address nor libpq's variable has one."""
        return self.parameters.get("password") or os.environ.get("PGPASSWORD", "")

    @property
    def for_sqlalchemy(self) -> str:
        """The address as SQLAlchemy and psycopg read it: all of it is parameters, which are the only part that SQLAlchemy decodes whole."""
        return f"postgresql+psycopg://?{urlencode({**POSTGRES_SESSION, **self.parameters}, quote_via=quote)}"


def _place(parameters: dict[str, str]) -> str:
    hosts, ports = parameters.get("host", ""), parameters.get("port", "")
    names = [f"[{name}]" if ":" in name else quote(name, safe="/") for name in hosts.split(",")]
    numbers = ports.split(",") if ports else []
    if len(numbers) == 1:
        numbers *= len(names)
    pairs = [f"{name}:{number}" if number else name for name, number in zip(names, numbers, strict=False)] or names
    shown = quote(",".join(pairs), safe="/[]:,%")
    return f"postgresql://{shown}/{quote(parameters.get('dbname', ''), safe='')}"
