"""Makes docs/tables.md, the data dictionary, from the descriptions of the tables and of the rules: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cli.tables import rules, types
from pipelines.records.tables.description import Column
from pipelines.records.tables.registry import RAW_TABLES, STAGED, TABLES, table_named
from pipelines.records.tables.shared_columns import VIEW_COLUMNS
from pipelines.store.catalogue import SNAPSHOTS, SQL_TYPES, TABLES_READ

TEMPLATE = Path(__file__).with_suffix(".md")


def markdown() -> str:
    """The page docs/tables.md."""
    # Markdown, not HTML; the texts are our own
    environment = Environment(
        loader=FileSystemLoader(TEMPLATE.parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["cell"] = lambda text: text.replace("|", "\\|")
    return environment.get_template(TEMPLATE.name).render(
        staged=STAGED,
        raw=RAW_TABLES,
        nested=table_named("task_time_logs"),
        about=(SNAPSHOTS, TABLES_READ),
        all=(*TABLES.values(), SNAPSHOTS, TABLES_READ),
        all_types=[types(Column("", kind, "")) for kind in SQL_TYPES],
        view_columns=VIEW_COLUMNS,
        types=types,
        rules=rules(),
    )


if __name__ == "__main__":
    sys.stdout.write(markdown())
