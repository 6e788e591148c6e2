"""A local S3 server, with a bucket for each test that needs one."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from threading import Lock
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import boto3
import pytest
from moto.server import ThreadedMotoServer

SECRET = "no-secret-that-occurs-by-chance"

_NUMBERS = count()
"""Numbers for bucket names: all servers of a process share moto's buckets, even after their end."""

_WRITE = Lock()


@dataclass
class S3:
    """The server's address and credentials."""

    endpoint: str

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment variables with the credentials."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }

    @cached_property
    def client(self) -> Any:
        """Amazon's client, for changes behind Bookferry's back."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id="testing",
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )

    def bucket(self) -> str:
        """Create a bucket. Returns its name."""
        name = f"library-{next(_NUMBERS)}"
        self.client.create_bucket(Bucket=name)
        return name


@contextmanager
def s3_server() -> Iterator[S3]:
    """A running server on a free port.

    It takes one write at a time: moto looks whether there is an object, and then stores the new one, so that of several
    puts on a condition more than one would win, which S3 excludes.
    """
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    backend = server._server.app

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        with nullcontext() if environ["REQUEST_METHOD"] in ("GET", "HEAD") else _WRITE:
            return backend(environ, start_response)

    server._server.app = answer
    try:
        host, port = server.get_host_and_port()
        yield S3(f"http://{host}:{port}")
    finally:
        server.stop()


@pytest.fixture(scope="session")
def shared_s3() -> Iterator[S3]:
    """One server for all tests of a process."""
    with s3_server() as server:
        yield server
