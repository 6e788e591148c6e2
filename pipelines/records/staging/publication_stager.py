"""Stages the publications of a library batch by batch, each batch in the fastest way that can take it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from pipelines.records.batches import StagedBatch
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.staging.fast_staging import RegularPublications
from pipelines.records.staging.general_staging import stage_publications

if TYPE_CHECKING:
    from pipelines.records.staging.columnar_staging import ColumnarPublications

RECORDS_PER_STEP = 400
"""Records per step of a way that goes record by record: few enough for the processor's cache, which saves a fifth of the time."""

MOST_FAILURES = 8
"""Batches in a row that Arrow could not read, after which it is not asked any more: this library has another form."""


class PublicationStager:
    """Stages the publications of one library: the fast ways where they can, the general way where it must."""

    def __init__(self, kinds: Kinds = STANDARD_KINDS) -> None:
        self._kinds = kinds
        self._columnar: ColumnarPublications | None = None
        self._regular = RegularPublications(kinds)
        self._failures = 0

    def stage(self, batch: pa.RecordBatch) -> list[StagedBatch]:
        """Stage a raw batch with the columns `payload` and `sha256`; never raises on data."""
        if self._failures < MOST_FAILURES:
            staged = self._by_columns(batch)
            if staged is not None:
                self._failures = 0
                return [staged]
            self._failures += 1
        return in_steps(self, batch)

    def __call__(self, payloads: Sequence[bytes], hashes: Sequence[str]) -> StagedBatch:
        """Stage some records, each by itself; never raises on data."""
        staged = self._regular.stage(payloads, hashes)
        if staged is None:
            staged = stage_publications(payloads, hashes, self._kinds)
            self._regular.learn(staged.residue)
        return staged

    def _by_columns(self, batch: pa.RecordBatch) -> StagedBatch | None:
        """Stage a batch at once; `None` if it is irregular. The import comes with the first batch: the reading process has none."""
        from pipelines.records.staging.columnar_staging import ColumnarPublications, IrregularBatchError  # noqa: PLC0415

        self._columnar = self._columnar or ColumnarPublications(self._kinds)
        self._columnar.learn(self._regular.learned)
        try:
            return self._columnar.stage(batch)
        except IrregularBatchError:
            return None


def in_steps(
    stage: Callable[[Sequence[bytes], Sequence[str]], StagedBatch], batch: pa.RecordBatch
) -> list[StagedBatch]:
    """Stage a raw batch, `RECORDS_PER_STEP` records at a time."""
    return [stage(payloads, hashes) for payloads, hashes in _steps(batch)]


def _steps(batch: pa.RecordBatch) -> Iterator[tuple[list[bytes], list[str]]]:
    """Yields payloads and hashes."""
    for start in range(0, batch.num_rows, RECORDS_PER_STEP):
        step = batch.slice(start, RECORDS_PER_STEP)
        payloads = cast("list[bytes]", step.column("payload").cast(pa.binary()).to_pylist())
        yield payloads, cast("list[str]", step.column("sha256").to_pylist())
