"""The sandbox as a process of its own, for tests that need a real socket or a real kill."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, Self

_ROOT = Path(__file__).parents[2]
_END_SECONDS = 60
"""A machine that does much else takes its time; one of these processes that never ends is what would be a finding."""


class SandboxProcess:
    """``python -m sandbox --port 0 ARGUMENTS`` for the length of a ``with`` block.

    It ends with the test process, even when that is killed: it watches the pipe that is its standard input.
    """

    def __init__(self, *arguments: str) -> None:
        self._command = [sys.executable, "-m", "sandbox", "--port", "0", "--stop-at-eof", *arguments]

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self._command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        line = self._stream("stdout").readline()
        if not line:
            self._close()
            raise RuntimeError(f"the sandbox did not start (exit {self.process.returncode}); see stderr")
        self.ready: dict[str, Any] = json.loads(line)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self._close()

    @property
    def url(self) -> str:
        """Where it is: every tenant is below."""
        return str(self.ready["url"])

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def base_url(self, tenant: str = "library") -> str:
        """The tenant's base_url; its API is below ``/api/v2``."""
        return str(self.ready["tenants"][tenant]["base_url"])

    @property
    def user(self) -> str:
        """The account that every tenant has."""
        return self._first("user")

    @property
    def password(self) -> str:
        """Its password."""
        return self._first("password")

    def session_cookie(self, tenant: str = "library") -> str:
        """The value of ``_library_session`` of the signed-in account."""
        return str(self.ready["tenants"][tenant]["session_cookie"])

    def publications(self, tenant: str = "library") -> int:
        """How many publications the tenant started with."""
        return int(self.ready["tenants"][tenant]["publications"])

    def counts(self, tenant: str = "library") -> dict[str, int]:
        """``requests``, ``largest_window`` and ``throttled`` of a tenant."""
        counts: dict[str, int] = self.control_get("tenants")[tenant]
        return counts

    def requests(self, tenant: str = "library") -> list[dict[str, Any]]:
        """The last requests of a tenant, oldest first."""
        seen: list[dict[str, Any]] = self.control_get(f"requests?tenant={tenant}")
        return seen

    def change(self, tenant: str = "library", *, variations: dict[str, Any] | None = None, **settings: Any) -> None:
        """Change settings while it runs: ``sb.change(latency=1, variations={"link": "none"})``."""
        self.control("PUT", "settings", {"tenant": tenant, "variations": variations or {}, **settings})

    def fault(self, fault: str, tenant: str = "library", *, path: str = "", method: str = "", **details: Any) -> None:
        """Order a fault: ``sb.fault("status", status=429, retry_after=5, path="page=3", times=2)``."""
        match = {"method": method, "path": path}
        self.control("POST", "faults", {"tenant": tenant, "match": match, "fault": fault, **details})

    def reset(self, *parts: str, tenant: str | None = None) -> None:
        """Begin again: counts, faults, settings, or only the named parts."""
        body = {"parts": list(parts)} if parts else {}
        self.control("POST", "reset", body | ({"tenant": tenant} if tenant else {}))

    def control_get(self, path: str) -> Any:
        """What the control endpoint tells at a path, for example ``tenants``."""
        return self.control("GET", path)

    def control(self, method: str, path: str, body: object = None) -> Any:
        """A request to the control endpoint; raises ``urllib.error.HTTPError`` when it is refused."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.ready['control']}/{path}", data=data, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)

    def terminate(self) -> int:
        """Ask it to end; its exit status."""
        self.process.terminate()
        return self.process.wait(_END_SECONDS)

    def kill(self) -> None:
        """End it as a power failure would."""
        self.process.kill()
        self.process.wait(_END_SECONDS)

    def _first(self, key: str) -> str:
        return str(next(iter(self.ready["tenants"].values()))[key])

    def _stream(self, name: str) -> Any:
        return getattr(self.process, name)

    def _close(self) -> None:
        self._stream("stdin").close()
        try:
            self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(_END_SECONDS)
        self._stream("stdout").close()
