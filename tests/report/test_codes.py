"""The codes by which people filter tables of issues: documented."""

from __future__ import annotations

from pipelines.migration.model.reasons import REASONS
from pipelines.records.advice import CODES
from pipelines.records.left_out import LeftOut


def test_everything_that_is_left_out_has_a_reason_of_its_own() -> None:
    """A rule of identifiers of the same code would lend it its sentence."""
    assert {*LeftOut} <= REASONS.keys()
    assert {*LeftOut}.isdisjoint(CODES)
