"""The rows of tables have the fields of their descriptions."""

from __future__ import annotations

from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.plan_table import PLAN, PlanTableRow


def test_a_row_has_the_columns_of_its_table_in_their_order() -> None:
    assert PlanTableRow._fields == tuple(column.name for column in PLAN.columns)


def test_a_row_of_a_plan_is_read_with_all_of_its_columns() -> None:
    assert set(PlanRow.__struct_fields__) - {"type"} == set(
        PlanTableRow._fields
    )  # the plan has the types of its resources
