"""Reports the end of a run to somebody outside: a POST to a web address, or a command. Bounded in time and tries."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import httpx
from tenacity import retry_if_exception_type, retry_if_result, stop_after_attempt

from pipelines.errors import BookferryError, TemporaryError
from pipelines.file_access import inherited_umask
from pipelines.service.http.failures import is_temporary
from pipelines.service.http.network import NetworkTransport
from pipelines.service.http.retries import retrying
from pipelines.service.redaction import MIN_LENGTH, keep_secret, outside_text
from pipelines.settings.retention_and_notify import Hook
from pipelines.version import VERSION

WEB_SECONDS = 5.0
"""Seconds for each step of one request: connecting, sending, waiting."""

COMMAND_SECONDS = 30.0
"""Seconds that a command may take."""

TRIES = 3
"""Tries of an address. A command is not repeated: it may have done its work."""

OUTPUT_CHARACTERS = 400
"""Characters of a failed command's output in the message."""


class WebhookError(BookferryError):
    """The report could not be delivered; the run's own result does not change."""


def call(
    hook: Hook,
    body: bytes,
    variables: Mapping[str, str],
    *,
    folder: Path,
    sleep: Callable[[float], None],
    tries: int = TRIES,
    seconds: float = COMMAND_SECONDS,
) -> None:
    """Deliver `body`, which is JSON, to `hook`: it is posted, or it is the command's standard input.

    The command runs in `folder` with no environment but `variables`.
    """
    if hook.command:
        _run(hook.command, body, variables, folder, seconds)
    else:
        _post(hook.address, body, sleep, tries)


def _post(address: str, body: bytes, sleep: Callable[[float], None], tries: int) -> None:
    parts = urlsplit(address)
    target = f"the address at {parts.hostname}"
    keep_secret(*(text for text in (address, parts.path.strip("/"), parts.query) if len(text) >= MIN_LENGTH))
    headers = {"Content-Type": "application/json", "User-Agent": f"bookferry/{VERSION}"}
    unreachable = (httpx.HTTPError, TemporaryError)
    policy = retrying(
        sleep,
        retry=retry_if_exception_type(unreachable) | retry_if_result(is_temporary),
        stop=stop_after_attempt(tries),
    )
    with httpx.Client(transport=NetworkTransport(address), timeout=WEB_SECONDS, follow_redirects=False) as client:

        def post() -> int:
            with client.stream("POST", address, content=body, headers=headers) as answer:
                return answer.status_code

        try:
            status = policy(post)
        except unreachable as error:  # its text may contain the address
            why = f"could not be reached ({type(error).__name__})"
        else:
            if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
                return
            why = f"answered {status}"
    raise WebhookError(f"{target} {why}. Is it the right one, and can this machine reach it?")


def _run(command: tuple[str, ...], body: bytes, variables: Mapping[str, str], folder: Path, seconds: float) -> None:
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as output:
        stdin.write(body)
        stdin.seek(0)
        try:
            process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=dict(variables),
                start_new_session=True,
                umask=inherited_umask(),  # its files are not ours
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it cannot be run"
            raise WebhookError(f"the command {command[0]} could not be started: {reason}.") from None
        try:
            status = process.wait(seconds)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)  # it leads its process group, and its status is not collected yet
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise WebhookError(
                    f"the command {command[0]} took more than {seconds:g} seconds and was ended."
                ) from None
            raise
        if status != 0:
            raise WebhookError(f"the command {command[0]} ended with {status}{_output_end(output)}.")


def _output_end(output: IO[bytes]) -> str:
    """Returns the end of a command's output, for a message."""
    end = output.seek(0, os.SEEK_END)
    output.seek(max(0, end - OUTPUT_CHARACTERS))
    text = outside_text(output.read().decode("utf-8", "replace"), OUTPUT_CHARACTERS).strip()
    return f": {text}" if text else ""
