"""A proxy in front of the sandbox with random faults, before and after a request has its effect; and processes that apply a plan."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any, Self
from urllib.parse import urlsplit

import pytest

ROOT_PATHS = ("/oauth/", "/_control/")
"""Paths without faults: a lost response to a refresh ends a sign-in under the strict policy, and other tests cover that."""

LATE = ("late", "late 502", "late held")
"""The effect comes some time after the connection was reset, after a proxy answered, or before the answer, which the sender waits for."""

FAULTS = (
    *LATE,
    "reset before",
    "reset after",
    "500 before",
    "500 after",
    "503 after",
    "429",
    "cut",
    "lag",
    "expired",
)

WAYS = [pytest.param(FAULTS, 0.1, id="any fault"), pytest.param(LATE, 0.3, id="late effects")]
"""What happens, and the share of requests to which it happens."""

LATE_SECONDS = 0.1, 0.6
"""Seconds after which a late request is carried out: less than the read timeout of `Applies`."""

ZYGOTE = """
import json, os, sys
from pathlib import Path
import pipelines.service.webhook
from pipelines.migration.flow import Migration
from pipelines.migration.apply.run import Limits, as_json
from pipelines.migration.model.plan_folders import find_plan
from pipelines.settings.config_file import load_settings
from tests.migration.library_pair import FastClock

def work(config, plan, what, read_seconds):
    with Migration(load_settings(Path(config)), clock=FastClock(), read_seconds=float(read_seconds)) as migration:
        found = find_plan(migration.data, plan)
        if what == "undo":
            undone = migration.undo(found, really=True)
            print([one.problem for one in undone.findings][:3], file=sys.stderr, flush=True)
            os._exit(0 if all(one.resource in ("authorities", "tasks") for one in undone.findings) else 3)
        limits = Limits(failures=10**9, failures_percent=100)
        applied = migration.apply(found, limits=limits)
        Path(config).with_name("result.json").write_text(json.dumps(as_json(applied)))
        os._exit(3 if applied.failed or applied.left else 0)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            work(*line.split())
        except Exception as error:
            print(type(error).__name__, error, file=sys.stderr)
            os._exit(1)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""A process with all modules imported. Each line that it reads forks a child, which applies or undoes a plan. An undo leaves authorities
and tasks, because the service deletes none. The result of an apply is in result.json, beside the configuration."""


_SIGNATURE = re.compile(rb'(?i)("x-amz-signature":\s*"[0-9a-f]+)[0-9a-f]{4}')
"""Part of a presigned form. The storage refuses a wrong signature like an expired one, with 403."""

_JSON = {"Content-Type": "application/json"}


class Applies:
    """Runs applies or undos of a plan in processes of their own, which start at once."""

    def __init__(self, read_seconds: float = 1.0) -> None:
        self.read_seconds = read_seconds
        self._child: Queue[int] = Queue()
        self._zygote = subprocess.Popen(
            [sys.executable, "-c", ZYGOTE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, config: object, plan: str, kill_after: float | None = None, *, what: str = "apply") -> int:
        """Run one; returns its exit status, negative if it was killed. `kill_after`: seconds."""
        assert self._zygote.stdin is not None
        assert self._zygote.stdout is not None
        self._zygote.stdin.write(f"{config} {plan} {what} {self.read_seconds}\n")
        self._zygote.stdin.flush()
        child = int(self._zygote.stdout.readline())
        self._child.put(child)
        if kill_after is not None:
            timer = threading.Timer(kill_after, lambda: _kill(child))
            timer.start()
            status = int(self._zygote.stdout.readline())
            timer.cancel()
            return status
        return int(self._zygote.stdout.readline())

    def kill(self) -> None:
        """Kill the run that was started last."""
        _kill(self._child.get())

    def close(self) -> str:
        """End the process; returns its standard error."""
        return self._zygote.communicate()[1]


def _kill(child: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


class RoughWay:
    """Forwards requests to a server. Each has one of the `faults` with the probability `share`; `happened` counts them."""

    def __init__(self, server: str, share: float, seed: int, faults: Sequence[str] = FAULTS) -> None:
        self._server, self._faults = urlsplit(server), faults
        self.share = share
        """The probability of a fault; may be changed at any time."""
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.happened: Counter[str] = Counter()
        way = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_any(self) -> None:
                way.serve(self)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_any  # noqa: N815  the names that http.server asks for

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: Any) -> None:
                """Ignore errors: clients are killed on purpose."""

        self._http = Server(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def fault_of(self, method: str, path: str) -> str:
        """The fault of a request; empty for none."""
        with self._lock:
            if self._random.random() >= self.share or any(one in path for one in ROOT_PATHS):
                return ""
            presign, search = "/presign" in path, method == "GET" and "/publications?" in path
            where = {"lag": search, "expired": presign, **dict.fromkeys(LATE, method != "GET")}
            fits = [fault for fault in self._faults if where.get(fault, True)]
            if not fits:
                return ""
            fault = self._random.choice(fits)
            self.happened[f"{method} {fault}"] += 1
            return fault

    def serve(self, request: BaseHTTPRequestHandler) -> None:
        """Answer a request, or make it fail."""
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        fault = self.fault_of(request.command, request.path)
        if fault in {"reset before", "500 before", "429", "late", "late 502"}:
            self._fail_before(request, fault)
            if fault not in LATE:
                return
        if fault in LATE:
            time.sleep(self._random.uniform(*LATE_SECONDS))  # in the thread of this request alone
        status, headers, content = self._forward(request, body)
        if fault in {"late", "late 502"}:
            return  # it has its answer
        if fault == "reset after":
            self._reset(request)
        elif fault in {"500 after", "503 after"}:
            self._answer(request, int(fault[:3]), b'{"error": {"code": "Ordered", "message": "after"}}')
        elif fault == "cut":
            self._answer(request, status, content[: len(content) // 2], headers, whole=len(content))
        elif fault == "expired":
            self._answer(request, status, _SIGNATURE.sub(rb"\g<1>0000", content), headers)
        elif fault == "lag" and "/publications?" in request.path and "page=1" in request.path:
            self._answer(request, 200, b'{"records": []}', {"X-Total": "0"})
        else:
            self._answer(request, status, content, headers)

    def _fail_before(self, request: BaseHTTPRequestHandler, fault: str) -> None:
        """Answer, or cut the connection, before the request has an effect."""
        if fault == "500 before":
            self._answer(request, 500, b'{"error": {"code": "Ordered", "message": "before"}}')
        elif fault == "429":
            self._answer(request, 429, b'{"error": {"code": "Ordered", "message": "slow"}}', {"Retry-After": "1"})
        elif fault == "late 502":
            self._answer(request, 502, b"", {"Connection": "close"})
        else:
            self._reset(request)

    def _forward(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, dict[str, str], bytes]:
        with closing(HTTPConnection(self._server.hostname or "", self._server.port, timeout=60)) as connection:
            connection.request(request.command, request.path, body or None, dict(request.headers))
            answer = connection.getresponse()
            content = answer.read()
        wanted = ("content-type", "x-total", "link", "www-authenticate", "location", "set-cookie")
        return answer.status, {name: value for name, value in answer.getheaders() if name.lower() in wanted}, content

    @staticmethod
    def _reset(request: BaseHTTPRequestHandler) -> None:
        request.close_connection = True
        with suppress(OSError):
            request.connection.shutdown(socket.SHUT_RDWR)  # at once, though the handler still has files on it
        request.connection.close()

    @staticmethod
    def _answer(
        request: BaseHTTPRequestHandler,
        status: int,
        content: bytes,
        headers: dict[str, str] | None = None,
        *,
        whole: int | None = None,
    ) -> None:
        with suppress(OSError):
            request.send_response(status)
            for name, value in (_JSON | {name.title(): value for name, value in (headers or {}).items()}).items():
                request.send_header(name, value)
            request.send_header("Content-Length", str(len(content) if whole is None else whole))
            request.end_headers()
            request.wfile.write(content)
        if whole is not None:
            request.close_connection = True


class KillingWay(RoughWay):
    """Forwards requests without faults, and kills the process that applies a plan at the first request of a kind."""

    def __init__(self, server: str) -> None:
        super().__init__(server, 0, 0)
        self._kill: tuple[Applies, str, str, str, bytes] | None = None

    def kill_at(self, applies: Applies, method: str, path: str, when: str, *, body: bytes = b"") -> None:
        """Kill a run before the first request of this kind has its effect, or after it, before its response."""
        self._kill = (applies, method, path, when, body)

    def serve(self, request: BaseHTTPRequestHandler) -> None:
        """Forward a request, or kill its sender."""
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        with self._lock:
            kill = self._kill
            if (
                kill is None
                or request.command != kill[1]
                or not re.search(kill[2], request.path)
                or kill[4] not in body
            ):
                kill = None
            else:
                self._kill = None
        if kill is None:
            status, headers, content = self._forward(request, body)
            self._answer(request, status, content, headers)
            return
        applies, when = kill[0], kill[3]
        if when == "after":
            self._forward(request, body)
        applies.kill()
        self._reset(request)
