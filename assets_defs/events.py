"""Results of assets as events of Dagster's history, so that a run can record assets that it has not planned, and a command all of them."""

from collections.abc import Iterable, Iterator

import dagster as dg

Result = dg.MaterializeResult | dg.AssetCheckResult
"""What an asset made, or what a check found. Each has the key of its asset, or is inside of one that has it."""

Event = dg.AssetMaterialization | dg.AssetCheckEvaluation


def events_of(results: Iterable[Result]) -> Iterator[Event]:
    """The events of results. Each check comes after the materialization that has it."""
    for result in results:
        assert result.asset_key is not None  # noqa: S101  see `Result`
        checks: Iterable[dg.AssetCheckResult] = [result] if isinstance(result, dg.AssetCheckResult) else ()
        if isinstance(result, dg.MaterializeResult):
            yield dg.AssetMaterialization(result.asset_key, metadata=result.metadata)
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
