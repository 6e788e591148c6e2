"""One contract for every store: a folder, a bucket in memory, a bucket of an S3 server over a socket."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.errors import StorageError
from pipelines.store.objects.buckets import PART_BYTES
from pipelines.store.objects.objects import ObjectInfo, Objects, read_all


def file_with(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "file"
    path.write_bytes(content)
    return path


def all_below(objects: Objects, folder: str) -> list[str]:
    return [entry.key for entry in objects.below(folder)]


class TestPut:
    """A put never replaces an object."""

    @pytest.mark.parametrize("size", [0, 1, PART_BYTES, 2 * PART_BYTES + 12345])
    def test_a_file_of_any_size(self, objects: Objects, tmp_path: Path, size: int) -> None:
        """Small files in one request, large ones in parts."""
        content = random.Random(size).randbytes(size)
        path = file_with(tmp_path, content)
        assert objects.put("a/file", path)
        assert not objects.put("a/file", file_with(tmp_path / "..", b"other" * (size or 1)))
        assert (objects.size("a/file"), objects.read("a/file") == content) == (size, True)
        assert path.read_bytes() == content, "the file stays"

    def test_one_of_many_concurrent_puts_wins(self, objects: Objects) -> None:
        """The content is the winner's."""
        together = Barrier(8)

        def put(number: int) -> bool:
            together.wait()
            return objects.put("claims/one", str(number).encode())

        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(put, range(8)))
        assert won.count(True) == 1
        assert objects.read("claims/one") == str(won.index(True)).encode()

    @pytest.mark.parametrize("size", [0, 2 * PART_BYTES + 12345])
    def test_replace_by_a_file(self, objects: Objects, tmp_path: Path, size: int) -> None:
        """Only `replace` replaces an object. Large files are uploaded in parts, and a shorter one leaves nothing of a longer one."""
        objects.replace("results/one", b"content")
        assert objects.read("results/one") == b"content"
        contents = [b"first" * 99, random.Random(size).randbytes(size)]
        for content in contents:
            objects.replace("results/one", file_with(tmp_path, content))
            assert objects.read("results/one") == content
        assert all_below(objects, "results") == ["results/one"]

    @pytest.mark.parametrize(
        "key",
        [
            "../outside",
            "a/../../b",
            "/etc/passwd",
            "a//b",
            "a/./b",
            "",
            "a/",
            "a\x00b",
            "a\nb",
            "a\\b",
            "..",
            "a\u202eb",
        ],
    )
    def test_a_hostile_key_leads_nowhere(self, objects: Objects, tmp_path: Path, key: str) -> None:
        """No key leads out of the store (I13)."""
        path = file_with(tmp_path, b"x")
        for attempt in (
            lambda: objects.put(key, b"x"),
            lambda: objects.put(key, path),
            lambda: objects.replace(key, b"x"),
            lambda: objects.read(key),
            lambda: objects.open(key),
            lambda: objects.size(key),
            lambda: objects.delete(key),
            lambda: objects.address_of(key),
        ):
            with pytest.raises(StorageError, match="cannot be the name of an object"):
                attempt()
        assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["file"]

    @pytest.mark.parametrize(
        "key", ["tenant=old/x=1", "with blank/ü.txt", "a%2Fb", "100%", "~", "a+b", "[a]*?", ".hidden"]
    )
    def test_an_unusual_key_is_a_key(self, objects: Objects, key: str) -> None:
        """Characters with a meaning elsewhere have none in a key."""
        assert objects.put(key, b"here")
        assert objects.read(key) == b"here"
        if "/" in key:
            assert all_below(objects, key.rpartition("/")[0]) == [key]


class TestRead:
    """A missing object is reported as missing; an existing one is readable from any position."""

    def test_a_missing_object(self, objects: Objects) -> None:
        """A folder is not an object either."""
        objects.put("a/b", b"x")
        assert objects.size("a/c") is None
        assert objects.size("a") is None
        for read in (objects.read, objects.open):
            with pytest.raises(FileNotFoundError):
                read("a/c")
        objects.delete("a/c")
        assert (all_below(objects, "nowhere"), objects.folders("nowhere")) == ([], [])

    def test_many_at_once_in_their_order(self, objects: Objects) -> None:
        """A missing object is None in its place."""
        for number in range(40):
            objects.put(f"many/{number}", str(number).encode())
        keys = [f"many/{number}" for number in range(41)]
        assert list(read_all(objects, keys)) == [*(str(number).encode() for number in range(40)), None]

    def test_parquet(self, objects: Objects, tmp_path: Path) -> None:
        """Pyarrow reads by a reader, DuckDB by the address, in several threads."""
        table = pa.table({"n": range(300_000), "text": [f"row {number}" for number in range(300_000)]})
        pq.write_table(table, tmp_path / "file", row_group_size=20_000)
        objects.put("t/table.parquet", tmp_path / "file")
        with objects.open("t/table.parquet") as file:
            assert pq.read_metadata(file).num_rows == 300_000
        with duckdb.connect(config={"threads": 4}) as database:
            objects.attach(database)
            address = objects.address_of("t/table.parquet")
            sql = "SELECT count(*), sum(n), bit_xor(hash(text)) FROM "
            (near,) = database.execute(f"{sql} read_parquet('{tmp_path / 'file'}')").fetchall()
            assert [near] * 3 == [database.execute(f"{sql} read_parquet('{address}')").fetchone() for _ in range(3)]
            with pytest.raises(duckdb.Error):
                database.execute(f"COPY (SELECT 1) TO '{address}x/y.parquet'")


class TestList:
    """A listing is sorted by key, across folders."""

    def test_sorted_by_key(self, objects: Objects) -> None:
        """The order is that of the key's bytes. S3 lists some keys per response, with a token for the next ones."""
        keys = [
            "l/a",
            "l/a-b",
            "l/a.b/c",
            "l/a0",
            "l/ab/c/d",
            "l/ab/c0",
            "l/b",
            "l/B",
            "l/é",
            "l/z/z",
            *(f"l/c{number}" for number in range(40)),
        ]
        for key in random.Random(3).sample(keys, len(keys)):
            objects.put(key, key.encode())
        expected = [ObjectInfo(key, len(key.encode())) for key in sorted(keys, key=str.encode)]
        assert list(objects.below("l")) == expected
        assert all_below(objects, "l/a") == [], "a folder is not a prefix of names"
        assert objects.folders("l") == ["a.b", "ab", "z"]

    def test_a_deleted_object_is_gone(self, objects: Objects) -> None:
        """Its key is free again."""
        for key in ("d/a", "d/b"):
            objects.put(key, b"x")
        objects.delete("d/a")
        assert all_below(objects, "d") == ["d/b"]
        assert objects.put("d/a", b"again")
