"""The sandbox as a process, for tests that need a socket or a kill."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Collection
from pathlib import Path
from typing import Any, Self

_ROOT = Path(__file__).parents[2]
_END_SECONDS = 60
"""How long to wait for the end of a process. A busy machine needs time; a process that never ends is the failure."""


class SandboxProcess:
    """``python -m sandbox --port 0 ARGUMENTS`` for the length of a ``with`` block.

    It ends with the test process, even if that is killed, because it watches the pipe that is its standard input.
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
        """Address of the service; every tenant is below it."""
        return str(self.ready["url"])

    @property
    def port(self) -> int:
        """Port of the service."""
        return int(self.url.rpartition(":")[2])

    def base_url(self, tenant: str = "library") -> str:
        """Returns the tenant's base_url."""
        return str(self.ready["tenants"][tenant]["base_url"])

    @property
    def user(self) -> str:
        """E-mail address of the account that every tenant has."""
        return self._first("user")

    @property
    def password(self) -> str:
        """Password of that account."""
        return self._first("password")

    def session_cookie(self, tenant: str = "library") -> str:
        """Returns the value of ``_library_session`` of that account."""
        return str(self.ready["tenants"][tenant]["session_cookie"])

    def publications(self, tenant: str = "library") -> int:
        """Returns the number of publications that the tenant started with."""
        return int(self.ready["tenants"][tenant]["publications"])

    def counts(self, tenant: str = "library") -> dict[str, int]:
        """Returns ``requests``, ``largest_window`` and ``throttled`` of a tenant."""
        counts: dict[str, int] = self.control_get("tenants")[tenant]
        return counts

    def requests(self, tenant: str = "library") -> list[dict[str, Any]]:
        """Returns the last requests of a tenant, oldest first."""
        entries: list[dict[str, Any]] = self.control_get(f"requests?tenant={tenant}")
        return entries

    def change(self, tenant: str = "library", *, variations: dict[str, Any] | None = None, **settings: Any) -> None:
        """Changes settings of the running service: ``sb.change(latency=1, variations={"link": "none"})``."""
        self.control("PUT", "settings", {"tenant": tenant, "variations": variations or {}, **settings})

    def reshape(self, resources: dict[str, Any], *tenants: str, description: Any = "follows", **settings: Any) -> None:
        """Gives these tenants records of other shapes: resource → its shape."""
        for tenant in tenants:
            self.change(tenant, shapes={"description": description, "resources": resources}, **settings)

    def fault(self, fault: str, tenant: str = "library", *, path: str = "", method: str = "", **details: Any) -> None:
        """Adds a fault: ``sb.fault("status", status=429, retry_after=5, path="page=3", times=2)``."""
        match = {"method": method, "path": path}
        self.control("POST", "faults", {"tenant": tenant, "match": match, "fault": fault, **details})

    def keep(self, numbers: Collection[int], tenant: str = "library") -> None:
        """Deletes all publications but those with these ids."""
        token = self.control("POST", "tokens", {"tenant": tenant})["access_token"]
        for number in range(1, self.publications(tenant) + 1):
            if number not in numbers:
                address = f"{self.base_url(tenant)}/api/v3/publications/{number}"
                headers = {"authorization": f"Bearer {token}"}
                urllib.request.urlopen(urllib.request.Request(address, headers=headers, method="DELETE")).close()

    def reset(self, *parts: str, tenant: str | None = None) -> None:
        """Resets counts, faults and settings, or only the named parts."""
        body = {"parts": list(parts)} if parts else {}
        self.control("POST", "reset", body | ({"tenant": tenant} if tenant else {}))

    def control_get(self, path: str) -> Any:
        """Returns the answer of the control endpoint to a GET, for example of ``tenants``."""
        return self.control("GET", path)

    def control(self, method: str, path: str, body: object = None) -> Any:
        """Sends a request to the control endpoint; an error status raises ``urllib.error.HTTPError``."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.ready['control']}/{path}", data=data, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)

    def terminate(self) -> int:
        """Asks the process to end and returns its exit status."""
        self.process.terminate()
        return self.process.wait(_END_SECONDS)

    def kill(self) -> None:
        """Kills the process."""
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
