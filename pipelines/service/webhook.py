"""Tells somebody outside how a run ended: a POST to a web address, or a command. Bounded in time and tries."""

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

from pipelines.errors import BookferryError, TemporaryError
from pipelines.service.http.network import NetworkTransport
from pipelines.service.redaction import MIN_LENGTH, keep_secret, outside_text
from pipelines.settings.schedule import Hook
from pipelines.version import VERSION

WEB_SECONDS = 5.0
"""For each step of one request: connecting, sending, waiting."""

COMMAND_SECONDS = 30.0

PAUSES = (1.0, 2.0)
"""Seconds before the second and the third try of an address. A command is not repeated: it may have done its work."""

OUTPUT_CHARACTERS = 400
"""Characters of what a command printed that are told when it fails."""


class WebhookError(BookferryError):
    """Nobody could be told; what the run did is not changed by that."""


def call(
    hook: Hook,
    body: bytes,
    variables: Mapping[str, str],
    *,
    folder: Path,
    sleep: Callable[[float], None],
    pauses: tuple[float, ...] = PAUSES,
    seconds: float = COMMAND_SECONDS,
) -> None:
    """Tell `hook`. `body` is JSON: what is posted, or the command's standard input; the command runs in `folder` with `variables` alone."""
    if hook.command:
        _run(hook.command, body, variables, folder, seconds)
    else:
        _post(hook.address, body, sleep, pauses)


def _post(address: str, body: bytes, sleep: Callable[[float], None], pauses: tuple[float, ...]) -> None:
    parts = urlsplit(address)
    shown = f"the address at {parts.hostname}"
    keep_secret(*(text for text in (address, parts.path.strip("/"), parts.query) if len(text) >= MIN_LENGTH))
    headers = {"Content-Type": "application/json", "User-Agent": f"bookferry/{VERSION}"}
    why = ""
    with httpx.Client(transport=NetworkTransport(address), timeout=WEB_SECONDS, follow_redirects=False) as client:
        for pause in (*pauses, None):
            try:
                with client.stream("POST", address, content=body, headers=headers) as answer:
                    status = answer.status_code
            except (httpx.HTTPError, TemporaryError) as error:  # its text may hold the address
                why = f"could not be reached ({type(error).__name__})"
            else:
                if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
                    return
                why = f"answered {status}"
                if status < HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.TOO_MANY_REQUESTS:
                    break
            if pause is not None:
                sleep(pause)
    raise WebhookError(f"{shown} {why}. Is it the right one, and can this machine reach it?")


def _run(command: tuple[str, ...], body: bytes, variables: Mapping[str, str], folder: Path, seconds: float) -> None:
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as printed:
        given.write(body)
        given.seek(0)
        try:
            process = subprocess.Popen(
                command,
                stdin=given,
                stdout=printed,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=dict(variables),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it cannot be run"
            raise WebhookError(f"the command {command[0]} could not be started: {reason}.") from None
        try:
            status = process.wait(seconds)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)  # it leads its group, and is not waited for yet
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise WebhookError(
                    f"the command {command[0]} took more than {seconds:g} seconds and was ended."
                ) from None
            raise
        if status != 0:
            raise WebhookError(f"the command {command[0]} ended with {status}{_output_end(printed)}.")


def _output_end(printed: IO[bytes]) -> str:
    """The end of what a command printed."""
    end = printed.seek(0, os.SEEK_END)
    printed.seek(max(0, end - OUTPUT_CHARACTERS))
    text = outside_text(printed.read().decode("utf-8", "replace"), OUTPUT_CHARACTERS).strip()
    return f": {text}" if text else ""
