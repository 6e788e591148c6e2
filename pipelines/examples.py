"""The example queries in sql/examples: question and SQL; DuckDB and Postgres give the same results."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

from pipelines.errors import ConfigurationError
from pipelines.settings.validation_messages import did_you_mean

_SQL = resources.files("sql").joinpath("examples")
"""Found when this module is imported: `bookferry.library` has our `sql` in its place only then, beside an analyst's own."""


@dataclass(frozen=True)
class ExampleQuery:
    """One file: its name without `.sql`, and its text, which begins with the question as a comment."""

    name: str
    sql: str

    @property
    def question(self) -> str:
        """The comment in the first line."""
        return self.sql.partition("\n")[0].removeprefix("--").strip()


def examples_folder() -> str:
    """Where the examples are."""
    return str(_SQL)


def all_examples() -> list[ExampleQuery]:
    """Every example, by name."""
    files = sorted((file for file in _SQL.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return [ExampleQuery(file.name.removesuffix(".sql"), file.read_text(encoding="utf-8")) for file in files]


def example(name: str) -> ExampleQuery:
    """The example of this name. Raises `ConfigurationError` with the list of examples if there is none."""
    examples = {query.name: query for query in all_examples()}
    if name not in examples:
        raise ConfigurationError(
            f"There is no example '{name}'{did_you_mean(name, examples)}. Examples: {', '.join(examples)}."
        )
    return examples[name]
