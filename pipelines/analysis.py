"""The staged tables in Python, for notebooks and scripts: `library().publications.df()`.

Each table is a DuckDB relation: a query that runs on demand. `.df()` returns a pandas DataFrame, `.to_arrow_table()` an Arrow table, and
`.to_arrow_reader(10_000)` a stream of Arrow batches for results larger than memory. `.filter()`, `.aggregate()` and other methods return
new relations; DuckDB then reads only the columns and rows that the result needs.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from pipelines.errors import ConfigurationError
from pipelines.examples import example
from pipelines.settings.config_file import find_config, load_settings
from pipelines.settings.validation_messages import did_you_mean
from pipelines.store.catalogue import catalogue_in_memory
from pipelines.store.stores import open_data


def library(config: str | Path | None = None, *, personal: bool = False) -> Tables:
    """The current tables of the data in bookferry.toml, which is `config`, else $BOOKFERRY_CONFIG, else in the working folder.

    Works for data in a folder and in a bucket, and writes nothing. Call it again to see a later backup. `personal`: include the
    personal columns, like `bookferry query --personal`.
    """
    settings = load_settings(find_config(Path(config) if config is not None else None))
    return Tables(catalogue_in_memory(open_data(settings), personal=personal))


class Tables:
    """The views of the catalogue as attributes. `connection` is their DuckDB connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    @property
    def names(self) -> list[str]:
        """Names of all tables."""
        views = self.connection.execute("SELECT DISTINCT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1")
        return [name for (name,) in views.fetchall()]

    def table(self, name: str) -> duckdb.DuckDBPyRelation:
        """One table. Raises `ConfigurationError` if there is no table of that name."""
        if name not in self.names:
            raise ConfigurationError(f"There is no table '{name}'{did_you_mean(name, self.names)}.")
        return self.connection.view(name)

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """The result of a query."""
        return self.connection.sql(query)

    def example(self, name: str) -> duckdb.DuckDBPyRelation:
        """The result of an example of `bookferry query --list-examples`."""
        return self.sql(example(name).sql)

    def __getattr__(self, name: str) -> duckdb.DuckDBPyRelation:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.table(name)
        except ConfigurationError as error:
            raise AttributeError(str(error)) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.names]

    def __repr__(self) -> str:
        return f"Tables({', '.join(name for name in self.names if not name.endswith(('_history', '_deleted')))})"
