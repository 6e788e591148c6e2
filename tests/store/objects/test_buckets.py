"""A bucket that refuses access or does not exist: what was tried, what came back, what to do, and no secret."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore

from pipelines.doctor.checks import trial_of
from pipelines.doctor.findings import CheckStatus
from pipelines.errors import BookferryError, ConfigurationError, StorageError, TemporaryError
from pipelines.store.objects.bucket_files import BucketFiles
from pipelines.store.objects.buckets import LONGEST_PAUSE, PART_BYTES, PATIENCE_SECONDS, Bucket, open_bucket
from pipelines.store.objects.objects import read_all
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Answer, ScriptedServer
from tests.store.s3 import S3, SECRET
from tests.store.s3_proxy import RESET, Proxy, s3_proxy


def refusal(code: str, message: str, status: int = 403) -> Answer:
    """An error of S3 with its usual extras."""
    text = (
        f"<Error><Code>{code}</Code><Message>{message}</Message><AWSAccessKeyId>testing</AWSAccessKeyId>"
        f"<StringToSign>AWS4 {SECRET}</StringToSign></Error>"
    )
    return Answer(text.encode(), status, {"content-type": "application/xml"})


def opened(
    endpoint: str,
    monkeypatch: pytest.MonkeyPatch,
    address: str = "s3://library/nights",
    *,
    clock: ManualClock | None = None,
    retries: int = 0,
) -> Bucket:
    for name, value in S3(endpoint).environ.items():
        monkeypatch.setenv(name, value)
    environ = S3(endpoint).environ
    return open_bucket(address, lambda: "me", environ, retries=retries, clock=clock or ManualClock())


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (
            refusal("NoSuchBucket", "The specified bucket does not exist", 404),
            ConfigurationError,
            "there is no such bucket",
        ),
        (
            refusal("SignatureDoesNotMatch", "The signature does not match."),
            ConfigurationError,
            "AWS_SECRET_ACCESS_KEY",
        ),
        (
            refusal("AccessDenied", "Access Denied"),
            ConfigurationError,
            "is not permitted (AccessDenied: Access Denied)",
        ),
        (refusal("ExpiredToken", "The provided token has expired.", 400), ConfigurationError, "is not permitted"),
        (
            refusal("InvalidArgument", "Invalid argument.", 400),
            StorageError,
            "InvalidArgument: Invalid argument. Solve this",
        ),
        (refusal("SlowDown", "Please reduce your request rate.", 503), TemporaryError, "the service fails (SlowDown"),
        (refusal("NotImplemented", "Not supported", 501), StorageError, "set AWS_DISABLE_BULK_DELETE=true"),
    ],
)
@pytest.mark.parametrize(
    "attempt",
    [
        lambda bucket: bucket.read("a"),
        lambda bucket: bucket.put("a", b""),
        lambda bucket: list(bucket.below("a")),
        lambda bucket: bucket.folders("a"),
    ],
    ids=["read", "put", "list", "folders"],
)
def test_a_refusal(
    answer: Answer,
    kind: type[BookferryError],
    words: str,
    attempt: Callable[[Bucket], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kind of error depends on the response alone. Messages reveal no signature (I10)."""
    with ScriptedServer(lambda _: answer) as server:
        with pytest.raises(kind) as caught:
            attempt(opened(server.url, monkeypatch))
        assert words in str(caught.value)
        assert "s3://library/nights/a" in str(caught.value)
        assert not [word for word in (SECRET, "StringToSign", "AWS4", "\n") if word in str(caught.value)]
        assert caught.value.__suppress_context__


def test_an_endpoint_where_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """The network may be at fault, so the error is temporary."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
    with pytest.raises(TemporaryError, match=r"no answer came.*endpoint, the region and the credentials"):
        opened(f"http://127.0.0.1:{port}", monkeypatch).read("a")


def test_http_is_for_this_machine_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No request goes to a remote host over http, even if the environment permits http."""
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    with pytest.raises(ConfigurationError, match=r"storage\.example\.org\) is http"):
        opened("http://key:secret@storage.example.org", monkeypatch)


def test_azure_without_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of each service are named."""
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(ConfigurationError, match="AZURE_STORAGE_ACCOUNT_NAME"):
        open_bucket("az://library/nights", lambda: "me", {})


def test_an_empty_object_exists_for_duckdb() -> None:
    """A missing one does not."""
    bucket = Bucket(MemoryStore(), "s3://library", lambda: "me")
    bucket.put("empty", b"")
    files = BucketFiles(bucket.address, bucket.size, bucket.reader)
    assert (files.exists("s3://library/empty"), files.exists("library/missing")) == (True, False)


OPERATIONS: dict[str, tuple[Callable[[Bucket, Path], Any], Any]] = {
    "put": (lambda bucket, _: bucket.put("new", b"content"), True),
    "put a file": (lambda bucket, large: bucket.put("large", large), True),
    "replace": (lambda bucket, _: bucket.replace("there", b"content"), None),
    "replace by a file": (lambda bucket, large: bucket.replace("there", large), None),
    "read": (lambda bucket, _: bucket.read("there"), b"before"),
    "read_all": (lambda bucket, _: list(read_all(bucket, ["there", "missing"])), [b"before", None]),
    "open": (lambda bucket, _: bucket.open("there").read(), b"before"),
    "size": (lambda bucket, _: (bucket.size("there"), bucket.size("missing")), (len("before"), None)),
    "below": (lambda bucket, _: [info.key for info in bucket.below("many")], ["many/a/1", "many/a/2", "many/b/1"]),
    "folders": (lambda bucket, _: bucket.folders("many"), ["a", "b"]),
    "delete": (lambda bucket, _: (bucket.delete("there"), bucket.size("there")), (None, None)),
}
"""Name of an operation → the operation, and its result in a store without faults."""


class TestOutage:
    """A gateway restarts, a store asks to slow down, a connection breaks: a minute of that ends no run."""

    @pytest.fixture
    def proxy(self, s3: S3) -> Iterator[Proxy]:
        """A store that can fail."""
        with s3_proxy(s3) as proxy:
            yield proxy

    @pytest.fixture
    def filled(self, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Bucket, ManualClock, Path]:
        """A bucket with some objects, its clock, and a file for an upload in parts."""
        large, clock = tmp_path / "large", ManualClock(0.0)
        large.write_bytes(b"0123456789" * (PART_BYTES // 9))
        bucket = opened(proxy.s3.endpoint, monkeypatch, f"s3://{proxy.s3.bucket()}/nights", clock=clock, retries=0)
        for key in ("there", "many/a/1", "many/a/2", "many/b/1"):
            bucket.put(key, b"before")
        return bucket, clock, large

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("name", "fault"),
        [
            *((name, (503, "SlowDown")) for name in OPERATIONS),
            *((name, (RESET, "")) for name in OPERATIONS),
            *(("read", fault) for fault in ((500, "InternalError"), (429, "TooManyRequests"), (502, ""))),
        ],
    )
    def test_an_operation_outlasts_a_minute(
        self,
        proxy: Proxy,
        filled: tuple[Bucket, ManualClock, Path],
        name: str,
        fault: tuple[int, str],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """Its result is that of a store without faults, though a request whose answer was lost had its effect."""
        bucket, clock, large = filled
        proxy.fault = lambda _method, _path: fault if clock.monotonic() < 60 else None
        operation, result = OPERATIONS[name]
        assert operation(bucket, large) == result
        assert clock.monotonic() < PATIENCE_SECONDS
        [warning] = [record.getMessage() for record in caplog.records if record.name.startswith("pipelines")]
        assert "is tried again for 2.5 minutes" in warning
        if name in {"put a file", "replace by a file"}:
            assert bucket.read("large" if name == "put a file" else "there") == large.read_bytes()

    @pytest.mark.long
    def test_a_listing_goes_on_where_it_broke_off(self, proxy: Proxy, filled: tuple[Bucket, ManualClock, Path]) -> None:
        """No name twice, and none missing."""
        bucket, clock, _ = filled
        for number in range(1050):
            proxy.s3.client.put_object(Bucket=bucket.address.split("/")[2], Key=f"nights/long/{number:04}", Body=b"")
        requests = count()
        proxy.fault = lambda _method, _path: (503, "SlowDown") if next(requests) in {1, 2} else None
        assert [info.key for info in bucket.below("long")] == [f"long/{number:04}" for number in range(1050)]
        assert clock.monotonic() < LONGEST_PAUSE

    def test_a_key_that_another_one_took_stays_taken(
        self, proxy: Proxy, filled: tuple[Bucket, ManualClock, Path]
    ) -> None:
        """Although the first answer was lost: only our own content counts as put by us."""
        bucket, _, _ = filled
        answers = iter([(503, "SlowDown")])
        proxy.fault = lambda _method, _path: next(answers, None)
        assert bucket.put("there", b"ours") is False
        assert bucket.read("there") == b"before"

    def test_a_longer_one_ends_the_run(self, proxy: Proxy, filled: tuple[Bucket, ManualClock, Path]) -> None:
        """It says what came back."""
        bucket, clock, _ = filled
        proxy.fault = lambda _method, _path: (503, "SlowDown")
        with pytest.raises(TemporaryError, match="SlowDown"):
            bucket.read("there")
        assert PATIENCE_SECONDS <= clock.monotonic() < PATIENCE_SECONDS + 2 * LONGEST_PAUSE


class TestDoctor:
    """The check puts one small object twice, lists, reads and deletes it."""

    def test_a_store_that_ignores_the_condition(self) -> None:
        """Some S3-compatible services do: two runs could mix their snapshots there."""

        class Replacing(Bucket):
            def put(self, key: str, content: bytes | Path) -> bool:
                self.replace(key, content)
                return True

        finding = trial_of(Replacing(MemoryStore(), "s3://like", lambda: "me"))
        assert (finding.status, "If-None-Match" in finding.message) == (CheckStatus.PROBLEM, True)

    def test_a_store_that_does_not_delete(self) -> None:
        """For example one that locks every object."""

        class Keeping(Bucket):
            def delete(self, key: str) -> None:
                pass

        assert (
            "a deleted object is still there" in trial_of(Keeping(MemoryStore(), "s3://locked", lambda: "me")).message
        )
