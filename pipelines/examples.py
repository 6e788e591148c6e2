"""The example queries in sql/examples: what they ask, and their SQL, which DuckDB and Postgres answer alike."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from itertools import takewhile

from pipelines.errors import ConfigurationError
from pipelines.settings.validation_messages import did_you_mean


@dataclass(frozen=True)
class ExampleQuery:
    """One file: its name without `.sql`, and its text, which begins with the question as a comment."""

    name: str
    sql: str

    @property
    def question(self) -> str:
        """The comment in the first line."""
        return self.sql.partition("\n")[0].removeprefix("--").strip()

    @property
    def notes(self) -> str:
        """What the comment says below the question: how to read the answer."""
        comment = takewhile(lambda line: line.startswith("--"), self.sql.splitlines()[1:])
        return " ".join(line.removeprefix("--").strip() for line in comment)


def all_examples() -> list[ExampleQuery]:
    """Every example, by name."""
    folder = resources.files("sql").joinpath("examples")
    files = sorted((one for one in folder.iterdir() if one.name.endswith(".sql")), key=lambda one: one.name)
    return [ExampleQuery(one.name.removesuffix(".sql"), one.read_text(encoding="utf-8")) for one in files]


def example(name: str) -> ExampleQuery:
    """The example of a name; a `ConfigurationError` that lists them where there is none."""
    known = {one.name: one for one in all_examples()}
    if name not in known:
        raise ConfigurationError(
            f"There is no example '{name}'{did_you_mean(name, known)}. Examples: {', '.join(known)}."
        )
    return known[name]
