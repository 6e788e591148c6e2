"""Parameters of an OAuth request. An empty one counts as absent (RFC 6749, section 3.1)."""

from __future__ import annotations

from werkzeug.datastructures import MultiDict


class Parameters:
    """The parameters of a query or a form."""

    def __init__(self, parameters: MultiDict[str, str]) -> None:
        self._given = parameters

    def get(self, name: str) -> str | None:
        """Returns the value, None if there is none."""
        return self._given.get(name) or None

    @property
    def repeated(self) -> list[str]:
        """The names that occur more than once."""
        return [name for name in self._given if len(self._given.getlist(name)) > 1]
