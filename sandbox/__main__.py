"""``python -m sandbox`` starts the service, prints its addresses on stdout, and ends on SIGTERM or SIGINT.

The ready line is one JSON object. Everything else goes to stderr. ``bookferry sandbox`` says by a variable that it is the caller: then
addresses and errors have the form of its other commands.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sqlite3
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from sandbox.app import CONTROL, Sandbox
from sandbox.clock import SystemClock
from sandbox.errors import ApiError
from sandbox.faults import Fault, parse_fault
from sandbox.server import Server
from sandbox.settings import Settings
from sandbox.shapes.service import service_of
from sandbox.state.database import Database
from sandbox.state.tenants import tenant_names
from sandbox.tenants import Account, Tenant, open_tenant

_TENANT = re.compile(r"(?P<name>[a-z0-9][a-z0-9-]*)(=(?P<kind>real|empty)(:(?P<count>\d+))?)?")


@dataclass(frozen=True, slots=True)
class TenantOption:
    """A tenant of the command line. ``records``: how many real records it starts with, None for all."""

    name: str
    records: int | None


OUTPUT_VARIABLE = "BOOKFERRY_SANDBOX_OUTPUT"
"""``words`` or ``json``: set by ``bookferry sandbox``, and by nothing else."""

# Exit status when nobody reads the ready line, as of a process that SIGPIPE ends
_CLOSED_PIPE = 141
_CLOSE_SECONDS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the service until a signal ends it; returns the exit status. Threads that still run are left to the exit."""
    parser = _parser()
    service = _Service(parser, parser.parse_args(arguments), _End())
    threading.Thread(target=service.run, daemon=True).start()
    status = service.end.wait()
    service.close()
    return status


class _End:
    """The end of the process, which its main thread waits for and does nothing else.

    The C code of Python writes each signal to the pipe, in any thread, at any instruction and without a lock. A handler that sets a
    ``threading.Event`` is not safe: it takes a lock, and the second of two signals (``timeout`` sends two) waits for the first one.
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self._status = 0
        os.set_blocking(self._write, False)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})  # a parent may have blocked them

    def wait(self) -> int:
        """Waits for a signal or a request; returns the exit status."""
        os.read(self._read, 1)
        return self._status

    def request(self, status: int) -> None:
        """Ends the process with this status."""
        self._status = status
        with suppress(BlockingIOError):
            os.write(self._write, b"\0")


class _Service:
    """The servers and their state. They start in a thread of their own, so that a signal also ends a long start."""

    def __init__(self, parser: argparse.ArgumentParser, options: argparse.Namespace, end: _End) -> None:
        self.end = end
        self._parser = parser
        self._options = options
        self._database: Database | None = None
        self._storage: Server | None = None

    def run(self) -> None:
        """Starts the servers and prints the ready line. Ends the process if that fails."""
        try:
            self._start()
        except SystemExit as refused:
            self.end.request(int(refused.code or 0))
        except BrokenPipeError:
            self.end.request(_CLOSED_PIPE)
        except BaseException:  # noqa: BLE001  nobody else reports what ends a thread before it ends the process
            try:
                traceback.print_exc()
            finally:
                self.end.request(1)

    def close(self) -> None:
        """Closes the state. A request may use it for as long as it likes, so this does not wait long."""
        if self._database is not None:
            closing = threading.Thread(target=self._database.close, daemon=True)
            closing.start()
            closing.join(_CLOSE_SECONDS)

    def _start(self) -> None:
        options = self._options
        tenants: dict[str, Tenant] = {}
        app = Sandbox(tenants)
        try:
            self._storage = storage = Server(
                options.host, options.storage_port, app.storage
            )  # it ends with the process
            settings = _settings(options)
            self._database = Database(options.state)
            tenants.update(_open_tenants(self._database, settings, options, storage.port))
            for tenant in tenants.values():
                for fault in options.faults:
                    tenant.faults.add(fault)
            server = Server(options.host, options.port, app)
        except ApiError as error:
            self._refuse(error.message)
        except sqlite3.Error as error:
            self._refuse(f"the state file {options.state} cannot be used: {error}")
        for each in (server, storage):
            threading.Thread(target=each.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        ready = _ready_line(server.url, storage.url, tenants)
        text = _in_words(ready) if os.environ.get(OUTPUT_VARIABLE) == "words" else json.dumps(ready) + "\n"
        sys.stdout.write(text)  # one write: `head -c` may end it
        sys.stdout.flush()
        if options.stop_at_eof:
            _wait_for_eof()
            self.end.request(0)

    def _refuse(self, message: str) -> NoReturn:
        if self._storage is not None:
            self._storage.server_close()
        self._parser.error(message)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Exits with 2; of ``bookferry sandbox`` with its form of an error."""
        output = os.environ.get(OUTPUT_VARIABLE)
        if output is None:
            super().error(message)
        message = f"{message}\n`{self.prog} --help` shows its usage."
        sys.stderr.write(f"error: {message}\n")
        if output == "json":
            sys.stdout.write(json.dumps({"error": message, "exit_status": 2}, ensure_ascii=False) + "\n")
            sys.stdout.flush()
        self.exit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="bookferry sandbox" if OUTPUT_VARIABLE in os.environ else "python -m sandbox",
        description="A local library service for tests and rehearsals.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 takes a free one (%(default)s)")
    parser.add_argument(
        "--storage-port", type=int, default=0, help="port of the storage service; 0 takes a free one (%(default)s)"
    )
    parser.add_argument(
        "--state", type=Path, metavar="FILE", help="keep the state in this SQLite file (default: in memory)"
    )
    parser.add_argument(
        "--tenant",
        type=_tenant_option,
        action="append",
        dest="tenants",
        metavar="NAME[=real[:N]|=empty]",
        help="a library and its content at the start: the real records, the first N of them, or none; "
        "repeatable (default: library=real, or the libraries of the state file)",
    )
    parser.add_argument(
        "--requests-per-minute",
        type=int,
        default=60,
        metavar="N",
        help="requests that a tenant accepts in any 60 seconds, 0 for no limit (%(default)s)",
    )
    parser.add_argument(
        "--latency", type=float, default=0.0, metavar="SECONDS", help="delay of each response (%(default)s)"
    )
    parser.add_argument(
        "--variation",
        type=_name_value_option,
        action="append",
        default=[],
        dest="variations",
        metavar="NAME=VALUE",
        help="different behaviour of the service, for example link=relative; repeatable, see the README",
    )
    parser.add_argument(
        "--oauth",
        type=_name_value_option,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the sign-in to v3, for example refresh_policy=leeway; repeatable, see the README",
    )
    parser.add_argument(
        "--fault",
        type=_fault_option,
        action="append",
        default=[],
        dest="faults",
        metavar="JSON",
        help='wrong answers from the start, as for POST /_control/faults: \'{"fault": "late", "share": 0.3, "seconds": 55, "times": 1000, '
        '"match": {"method": "POST"}}\'; repeatable, see the README',
    )
    parser.add_argument(
        "--shapes",
        type=_shapes_option,
        metavar="FILE",
        help="other shapes of the resources of version 3, as a JSON file describes them, see the README",
    )
    parser.add_argument("--user", default=Account().email, metavar="EMAIL", help="account of each tenant (%(default)s)")
    parser.add_argument("--password", default=Account().password, metavar="PW", help="its password (%(default)s)")
    parser.add_argument(
        "--stop-at-eof", action="store_true", help="end when standard input ends, for example with the parent process"
    )
    return parser


def _tenant_option(text: str) -> TenantOption:
    parts = _TENANT.fullmatch(text)
    if parts is None or (parts["kind"] == "empty" and parts["count"]):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME, NAME=real, NAME=real:N or NAME=empty")
    if parts["kind"] == "empty":
        return TenantOption(parts["name"], 0)
    return TenantOption(parts["name"], int(parts["count"]) if parts["count"] else None)


def _name_value_option(text: str) -> tuple[str, object]:
    """Parses ``NAME=VALUE``; a value that is valid JSON is decoded, any other is text."""
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _fault_option(text: str) -> Fault:
    try:
        return parse_fault(json.loads(text))
    except ApiError as error:
        raise argparse.ArgumentTypeError(error.message) from None


def _shapes_option(path: str) -> str:
    try:
        text = Path(path).read_text("utf-8")
        service_of(text or "{")
    except ApiError as error:
        raise argparse.ArgumentTypeError(f"{path}: {error.message}") from None
    except (OSError, UnicodeError) as error:
        raise argparse.ArgumentTypeError(f"{path} cannot be read: {error}") from None
    return text


def _wait_for_eof() -> None:
    """Waits for the end of standard input."""
    while os.read(sys.stdin.fileno(), 65536):
        pass


def _settings(options: argparse.Namespace) -> Settings:
    return Settings().with_changes(
        {
            "latency": options.latency,
            "requests_per_minute": options.requests_per_minute,
            "variations": dict(options.variations),
            "oauth": dict(options.oauth),
            "shapes": options.shapes,
        }
    )


def _open_tenants(
    database: Database, settings: Settings, options: argparse.Namespace, storage_port: int
) -> dict[str, Tenant]:
    """Opens the requested tenants and fills those that are new."""
    account = Account(options.user, options.password)
    clock = SystemClock()
    stored_tenants = [TenantOption(name, 0) for name in tenant_names(database)]
    return {
        each.name: open_tenant(
            database,
            each.name,
            records=each.records,
            account=account,
            settings=settings,
            clock=clock,
            storage_port=storage_port,
        )
        for each in options.tenants or stored_tenants or [TenantOption("library", None)]
    }


def _ready_line(url: str, storage: str, tenants: Mapping[str, Tenant]) -> dict[str, Any]:
    described = {
        name: {
            "base_url": f"{url}/{name}",
            "user": tenant.account.email,
            "password": tenant.account.password,
            "session_cookie": tenant.session_cookie,
            "publications": tenant.publications.count(),
        }
        for name, tenant in tenants.items()
    }
    return {"ready": True, "url": url, "tenants": described, "control": f"{url}/{CONTROL}", "storage": storage}


def _in_words(ready: Mapping[str, Any]) -> str:
    """The ready line for people: addresses, and the account of all libraries."""
    tenants: Mapping[str, Any] = ready["tenants"]
    lines = [f"The sandbox runs at {ready['url']}  (Ctrl-C ends it)"]
    lines += [
        f"  {name}: {tenant['base_url']} with {tenant['publications']:,} publications"
        for name, tenant in tenants.items()
    ]
    for account, password in sorted({(tenant["user"], tenant["password"]) for tenant in tenants.values()}):
        lines.append(f"Account: {account}  Password: {password}")
    return "\n".join([*lines, f"Control: {ready['control']}", "--json prints all of this as JSON."]) + "\n"


if __name__ == "__main__":
    os._exit(
        main()
    )  # the usual end of Python waits for locks of threads that are in the middle of a request or a write
