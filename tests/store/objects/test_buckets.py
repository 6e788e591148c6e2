"""A bucket that refuses access or does not exist: what was tried, what came back, what to do, and no secret."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest
from obstore.store import MemoryStore

from pipelines.doctor.findings import CheckStatus
from pipelines.doctor.storage import FOLDER, bucket
from pipelines.errors import BookferryError, ConfigurationError, StorageError, TemporaryError
from pipelines.store.objects.buckets import Bucket, open_bucket
from pipelines.store.objects.claims import Owner
from tests.service.scripted import Answer, ScriptedServer
from tests.store.s3 import S3, SECRET


def refusal(code: str, message: str, status: int = 403) -> Answer:
    """An error of S3 with its usual extras."""
    text = (
        f"<Error><Code>{code}</Code><Message>{message}</Message><AWSAccessKeyId>testing</AWSAccessKeyId>"
        f"<StringToSign>AWS4 {SECRET}</StringToSign></Error>"
    )
    return Answer(text.encode(), status, {"content-type": "application/xml"})


def opened(endpoint: str, monkeypatch: pytest.MonkeyPatch, address: str = "s3://library/nights") -> Bucket:
    for name, value in S3(endpoint).environ.items():
        monkeypatch.setenv(name, value)
    return open_bucket(address, lambda _: Owner("me"), S3(endpoint).environ, retries=1)


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (
            refusal("NoSuchBucket", "The specified bucket does not exist", 404),
            ConfigurationError,
            "there is no such bucket",
        ),
        (
            refusal("InvalidAccessKeyId", "The key does not exist in our records."),
            ConfigurationError,
            "does not accept the credentials",
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
        (refusal("SlowDown", "Please reduce your request rate.", 503), TemporaryError, "or fails"),
        (refusal("NotImplemented", "Not supported", 501), StorageError, "set AWS_DISABLE_BULK_DELETE=true"),
    ],
)
@pytest.mark.parametrize(
    "attempt",
    [
        lambda one: one.read("a"),
        lambda one: one.put("a", b""),
        lambda one: list(one.below("a")),
        lambda one: one.folders("a"),
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
        assert not [one for one in (SECRET, "StringToSign", "AWS4", "\n") if one in str(caught.value)]
        assert caught.value.__suppress_context__


def test_an_endpoint_where_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """The network may be at fault, so the error is temporary."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
    with pytest.raises(TemporaryError, match=r"cannot be reached.*endpoint and region in the environment"):
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
        open_bucket("az://library/nights", lambda _: Owner("me"), {})


class TestDoctor:
    """The check puts one small object twice, lists, reads and deletes it."""

    def test_a_good_store(self, s3: S3) -> None:
        """Nothing is left of the test."""
        one = open_bucket(f"s3://{s3.bucket()}/x", lambda _: Owner("me"), s3.environ)
        assert bucket(one).status is CheckStatus.OK
        assert list(one.below(FOLDER)) == []

    def test_a_store_that_ignores_the_condition(self) -> None:
        """Some S3-compatible services do: two runs could mix their snapshots there."""

        class Replacing(Bucket):
            def put(self, key: str, content: bytes) -> bool:
                self.replace(key, content)
                return True

        found = bucket(Replacing(MemoryStore(), "s3://like", lambda _: Owner("me")))
        assert (found.status, "If-None-Match" in found.message) == (CheckStatus.PROBLEM, True)

    def test_a_store_that_does_not_delete(self) -> None:
        """For example one that locks every object."""

        class Keeping(Bucket):
            def delete(self, key: str) -> None:
                pass

        assert (
            "a deleted object is still there"
            in bucket(Keeping(MemoryStore(), "s3://locked", lambda _: Owner("me"))).message
        )

    def test_no_bucket(self, s3: S3) -> None:
        """The exit status is that of a configuration error."""
        found = bucket(open_bucket("s3://no-such-bucket", lambda _: Owner("me"), s3.environ))
        assert (found.status, found.exit_status) == (CheckStatus.PROBLEM, ConfigurationError.exit_status)
        assert "no such bucket" in found.message
