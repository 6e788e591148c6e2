"""An S3 server on this machine, with a bucket for each test that wants one."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

SECRET = "no-secret-that-occurs-by-chance"

_NUMBERS = count()
"""Of the buckets of all servers of this process: moto keeps what is in them for all of its servers together, and beyond their end."""


@dataclass
class S3:
    """Where it is, and what it takes to be let in."""

    endpoint: str

    @property
    def environ(self) -> Mapping[str, str]:
        """The variables of whoever may use it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }

    @property
    def client(self) -> Any:
        """Amazon's own client, for what a test does behind our back."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id="testing",
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )

    def bucket(self) -> str:
        """A new bucket, by its name."""
        name = f"library-{next(_NUMBERS)}"
        self.client.create_bucket(Bucket=name)
        return name


@contextmanager
def s3_server() -> Iterator[S3]:
    """The server, on a port that is free."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield S3(f"http://{host}:{port}")
    finally:
        server.stop()
