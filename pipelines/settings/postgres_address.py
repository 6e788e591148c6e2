"""The address of a Postgres database, read once for all drivers: each has other rules for blanks and encoded characters (RFC 3986).

What a driver gets are libpq's parameters, so that none reads the address, and none can quote a part of it in a message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote, unquote

from pipelines.errors import ConfigurationError

_ADDRESS = re.compile(r"postgres(?:ql)?(?:\+\w+)?://(?:([^/?]*)@)?([^/?@]*)(?:/([^?]*))?(?:\?(.*))?", re.DOTALL)
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.%\w]+)\]|([^\[\]:]*))(?::(\d{0,5}))?")


@dataclass(frozen=True)
class PostgresAddress:
    """`parameters`: those of libpq, decoded. `place`: the address without user and password, for people."""

    parameters: dict[str, str]
    place: str

    @classmethod
    def parse(cls, address: str) -> Self:
        """Reads an address. Raises `ConfigurationError`, without a part of it in the message."""
        match = _ADDRESS.fullmatch(address.strip())
        hosts = [_HOST.fullmatch(host) for host in match[2].split(",")] if match else [None]
        if match is None or None in hosts:
            raise ConfigurationError(
                "The variable that postgres_env names holds no address such as postgresql://user:password@host/database. Correct it: "
                "within user and password, encode / ? @ and % as %2F, %3F, %40 and %25."
            )
        user, _, password = (match[1] or "").partition(":")
        ports = [host[3] or "" for host in hosts if host]
        found = {
            "user": user,
            "password": password,
            "host": ",".join(host[1] or host[2] or "" for host in hosts if host),
            "port": ",".join(ports) if any(ports) else "",
            "dbname": match[3] or "",
        }
        parameters = {name: _decoded(text) for name, text in found.items() if text}
        for option in filter(None, (match[4] or "").split("&")):
            name, _, value = option.partition("=")
            parameters[_decoded(name)] = _decoded(value)
        if parameters.pop("ssl", None) == "true":  # as libpq reads it
            parameters.setdefault("sslmode", "require")
        return cls(parameters, _place(parameters))

    @property
    def secret(self) -> str:
        """The password; empty where the address has none."""
        return self.parameters.get("password", "")


def _decoded(text: str) -> str:
    """The plain text: `+` is itself here."""
    return unquote(text, errors="surrogateescape")


def _place(parameters: dict[str, str]) -> str:
    hosts, ports = parameters.get("host", ""), parameters.get("port", "")
    names = [f"[{name}]" if ":" in name else quote(name, safe="/") for name in hosts.split(",")]
    numbers = ports.split(",") if ports else []
    if len(numbers) == 1:
        numbers *= len(names)
    pairs = [f"{name}:{number}" if number else name for name, number in zip(names, numbers, strict=False)] or names
    shown = quote(",".join(pairs), safe="/[]:,%")
    return f"postgresql://{shown}/{quote(parameters.get('dbname', ''), safe='')}"
