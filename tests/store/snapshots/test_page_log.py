"""The page log: what a killed process, or a damaged disk, leaves of it is read up to its last whole frame (I9)."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest

from pipelines.store.snapshots.page_log import PageLog

FRAMES = [(b"mark 1", b"body one"), (b"mark 2", b""), (b"mark 3", b"body three")]
HEADER = 16
"""Bytes of a frame before its mark: sign, two lengths, checksum."""
SIZES = [HEADER + len(mark) + len(body) for mark, body in FRAMES]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log with three frames."""
    path = tmp_path / "pages.log"
    with PageLog(path) as log:
        for mark, body in FRAMES:
            log.append(mark, body)
    return path


def frames(path: Path) -> list[tuple[bytes, bytes]]:
    with PageLog(path) as log:
        return list(log.replay())


def test_a_log_that_ends_anywhere_has_its_whole_frames(path: Path) -> None:
    """And goes on after the last one."""
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        complete = sum(size <= end for size in accumulate(SIZES))
        with PageLog(path) as log:
            assert list(log.replay()) == FRAMES[:complete]
            log.append(b"next", b"page")
        assert frames(path) == [*FRAMES[:complete], (b"next", b"page")]


def test_a_frame_with_any_damaged_byte_is_none(path: Path) -> None:
    """Its sign, a length, its checksum, its content: the log ends before it."""
    whole = path.read_bytes()
    for place in range(sum(SIZES[:-1]), len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert frames(path) == FRAMES[:-1], place
