"""Results of assets as events of Dagster's history, so that a run can record assets that it has not planned, and a command all of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from assets_defs.metadata import MOST_SHOWN, one_line_each

ERROR = dg.AssetCheckSeverity.ERROR

Result = dg.MaterializeResult | dg.AssetCheckResult
"""What an asset made, or what a check found. Each has the key of its asset, or is inside of one that has it."""


def proof_results(
    key: dg.AssetKey, check: str, problems: Sequence[str], metadata: Mapping[str, Any], *, in_part: bool = False
) -> Iterator[Result]:
    """The check of a proof, which names the first problems, and the proof itself where there are none, or where it is one in part."""
    shown = problems[:MOST_SHOWN]
    yield dg.AssetCheckResult(
        asset_key=key,
        check_name=check,
        passed=not shown,
        severity=dg.AssetCheckSeverity.WARN if in_part else ERROR,
        description="\n".join(shown),
        metadata={"problems": one_line_each(shown)},
    )
    if in_part or not shown:
        yield dg.MaterializeResult(asset_key=key, metadata=metadata)


def failing(results: Iterable[Result]) -> Iterator[Result]:
    """The same results. Raises `dagster.Failure` after the last where a check has failed that does not only warn."""
    problems = []
    for result in results:
        yield result
        if isinstance(result, dg.AssetCheckResult) and not result.passed and result.severity == ERROR:
            problems.append(result.description or "")
    if problems:
        raise dg.Failure("\n".join(problems), allow_retries=False)


Event = dg.AssetMaterialization | dg.AssetCheckEvaluation

DATA_VERSION = "dagster/data_version"
"""Dagster's tag by which an asset that is made of another one sees that this is a new one. A run has it from the result."""


def events_of(results: Iterable[Result]) -> Iterator[Event]:
    """The events of results. Each check comes after the materialization that has it."""
    for result in results:
        assert result.asset_key is not None  # noqa: S101  see `Result`
        checks: Iterable[dg.AssetCheckResult] = [result] if isinstance(result, dg.AssetCheckResult) else ()
        if isinstance(result, dg.MaterializeResult):
            version = {DATA_VERSION: result.data_version.value} if result.data_version else {}
            yield dg.AssetMaterialization(result.asset_key, metadata=result.metadata, tags=version)
            checks = result.check_results or ()
        for check in checks:
            yield dg.AssetCheckEvaluation(
                asset_key=result.asset_key,
                check_name=str(check.check_name),
                passed=check.passed,
                severity=check.severity,
                description=check.description,
                metadata=check.metadata,
            )
