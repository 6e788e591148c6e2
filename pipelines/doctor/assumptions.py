"""All guesses of docs/assumptions.md that reading can test, in the order of that page."""

from __future__ import annotations

from collections.abc import Callable

from pipelines.doctor import guessed_lists, guessed_records
from pipelines.doctor.findings import CheckResult
from pipelines.doctor.guesses import Look

CHECKS: tuple[Callable[[Look], CheckResult], ...] = (
    guessed_records.unknown_fields,
    guessed_lists.backup_list,
    guessed_lists.error_body,
    guessed_lists.order,
    guessed_lists.backup_list_form,
    guessed_lists.identifier_search,
    guessed_lists.beyond_the_end,
    guessed_lists.page_size,
    guessed_lists.page_links,
    guessed_lists.total,
    guessed_records.categories,
    guessed_records.identifiers,
    guessed_records.nulls,
    guessed_records.import_state,
    guessed_records.deprecations,
    guessed_records.file_addresses,
    guessed_records.days,
)


def check_assumptions(look: Look) -> list[CheckResult]:
    """What the answers say of every guess."""
    return [check(look) for check in CHECKS]
