"""The parameters of an OAuth request: each at most once, and one without a value is not there (RFC 6749, section 3.1)."""

from __future__ import annotations

from werkzeug.datastructures import MultiDict


class Parameters:
    """What came in a query or a form."""

    def __init__(self, given: MultiDict[str, str]) -> None:
        self._given = given

    def get(self, name: str) -> str | None:
        """The value, None when there is none."""
        return self._given.get(name) or None

    @property
    def repeated(self) -> list[str]:
        """The names that came more than once."""
        return [name for name in self._given if len(self._given.getlist(name)) > 1]
