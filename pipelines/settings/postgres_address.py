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

_ADDRESS = re.compile(rf"{SCHEME.pattern}((?:[^/?@]*@)?([^?@]*)(?:\?[^@]*)?)")
"""One `@` at most, and neither `/` nor `?` before it, as libpq would allow: what seems to be a name may be the rest of a password."""


@dataclass(frozen=True)
class PostgresAddress:
    """`parameters`: those of libpq, decoded. `conninfo`: the same, with timeouts, as libpq reads them.

    `place`: the address without user, password and parameters, for people.
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
        if match is None:
            raise refused
        try:
            read = conninfo_to_dict(f"postgresql://{match[1]}")
            parameters = {name: str(value) for name, value in read.items()}
            conninfo = make_conninfo(**{**POSTGRES_SESSION, **parameters})
        except (ProgrammingError, UnicodeError):  # an encoding, or a parameter, that libpq does not know
            raise refused from None
        if not re.fullmatch(r"[0-9,]*", parameters.get("port", "")):
            raise refused
        return cls(parameters, conninfo, f"postgresql://{quote(match[2], safe='/[]:,%')}")

    @property
    def secret(self) -> str:
        """The password; empty where neither the address nor libpq's variable has one."""
        return self.parameters.get("password") or os.environ.get("PGPASSWORD", "")

    @property
    def for_sqlalchemy(self) -> str:
        """The address as SQLAlchemy and psycopg read it: all of it is parameters, which are the only part that SQLAlchemy decodes whole."""
        return f"postgresql+psycopg://?{urlencode({**POSTGRES_SESSION, **self.parameters}, quote_via=quote)}"
