"""The rows of tables have the fields of their descriptions."""

from __future__ import annotations

import pytest

from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.plan_table import PLAN, PlanTableRow
from pipelines.migration.plan.comparison import WRITTEN, WrittenRow
from pipelines.records.tables.description import Table

ROWS = ((PLAN, PlanTableRow), (WRITTEN, WrittenRow))


@pytest.mark.parametrize(("table", "row"), ROWS, ids=[table.name for table, _row in ROWS])
def test_a_row_has_the_columns_of_its_table_in_their_order(table: Table, row: type[PlanTableRow]) -> None:
    assert row._fields == tuple(column.name for column in table.columns)


def test_a_row_of_a_plan_is_read_with_all_of_its_columns() -> None:
    assert set(PlanRow.__struct_fields__) - {"type"} == set(
        PlanTableRow._fields
    )  # the plan has the types of its resources
