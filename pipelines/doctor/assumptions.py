"""All assumptions of docs/assumptions.md that reads can test, in the order of that page."""

from __future__ import annotations

from collections.abc import Callable

from pipelines.doctor import assumptions_about_lists, assumptions_about_records
from pipelines.doctor.assumption_results import ServiceResponses
from pipelines.doctor.findings import CheckResult

CHECKS: tuple[Callable[[ServiceResponses], CheckResult], ...] = (
    assumptions_about_records.unknown_fields,
    assumptions_about_lists.backup_list,
    assumptions_about_lists.error_body,
    assumptions_about_lists.order,
    assumptions_about_lists.backup_list_form,
    assumptions_about_lists.identifier_search,
    assumptions_about_lists.beyond_the_end,
    assumptions_about_lists.page_size,
    assumptions_about_lists.page_links,
    assumptions_about_lists.total,
    assumptions_about_records.categories,
    assumptions_about_records.identifiers,
    assumptions_about_records.nulls,
    assumptions_about_records.import_state,
    assumptions_about_records.deprecations,
    assumptions_about_records.file_addresses,
    assumptions_about_records.days,
)


def check_assumptions(responses: ServiceResponses) -> list[CheckResult]:
    """The result for every assumption."""
    return [check(responses) for check in CHECKS]
