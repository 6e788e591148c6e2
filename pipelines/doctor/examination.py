"""Makes the checks of a tenant, in their order: those that apply, and of which the library answers what they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipelines.doctor.checks import CHECKS, Check
from pipelines.doctor.findings import CheckResult, CheckStatus, failed, not_checked, warning
from pipelines.doctor.look import Look
from pipelines.errors import BookferryError


@dataclass(frozen=True)
class Examination:
    """The results for one tenant, in the order of the output."""

    tenant: str
    findings: list[CheckResult]
    requests: int


def examine(look: Look, checks: Sequence[Check] = CHECKS) -> Examination:
    """Make every check that applies. Never raises: a check that cannot be made is a result, and hides no other one."""
    results: dict[str, CheckResult] = {}
    for check in checks:
        if check.when(look):
            results[check.name] = replace(_result(check, look, results), name=check.name)
    return Examination(look.tenant, [*results.values()], look.requests)


def _result(check: Check, look: Look, results: dict[str, CheckResult]) -> CheckResult:
    for need in check.needs:
        if need in results and results[need].unchecked:
            return not_checked(results[need].unchecked)
        if need in results and results[need].status is CheckStatus.PROBLEM:
            return not_checked(f"first solve the problem of {need}")
    try:
        return check.run(look)
    except BookferryError as error:
        return failed(error)
    except Exception as error:  # noqa: BLE001  records and files are from outside, and the other checks can be right
        return warning(
            f"could not be checked: {type(error).__name__} in Bookferry",
            "This is a mistake of Bookferry: please open an issue. The other checks are not concerned.",
        )
