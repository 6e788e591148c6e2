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
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
from sandbox.tenants import Account, Tenant, open_tenant

_TENANT = re.compile(r"(?P<name>[a-z0-9][a-z0-9-]*)(=(?P<kind>real|empty)(:(?P<count>\d+))?)?")


TenantOption = tuple[str, int | None]
"""Name of a tenant of the command line, and how many real records it starts with: None for all."""

OUTPUT_VARIABLE = "BOOKFERRY_SANDBOX_OUTPUT"
"""``words`` or ``json``: set by ``bookferry sandbox``, and by nothing else."""

# Exit status when nobody reads the ready line, as of a process that SIGPIPE ends
_CLOSED_PIPE = 141
_STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the service until a signal ends it; returns the exit status. Threads that still run are left to the exit."""
    parser = _parser()
    service = _Service(parser, parser.parse_args(arguments))
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)  # in every thread: the main thread waits for them
    threading.Thread(target=service.run, daemon=True).start()
    signal.sigwait(_STOP_SIGNALS)
    service.close()
    return service.status


class _Service:
    """The servers and their state. They start in a thread of their own, so that a signal also ends a long start."""

    def __init__(self, parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
        self.status = 0
        self._parser = parser
        self._options = options
        self._database: Database | None = None
        self._storage: Server | None = None

    def run(self) -> None:
        """Starts the servers and prints the ready line. Ends the process if that fails, or at the end of standard input if it should."""
        try:
            self._start()
            if not self._options.stop_at_eof:
                return
            while os.read(sys.stdin.fileno(), 65536):
                pass
        except SystemExit as refused:
            self.status = int(refused.code or 0)
        except BrokenPipeError:
            self.status = _CLOSED_PIPE
        except BaseException:  # noqa: BLE001  nobody else reports what ends a thread before it ends the process
            self.status = 1
            with suppress(OSError):  # stderr may be a pipe that nobody reads any more
                traceback.print_exc()
        os.kill(os.getpid(), signal.SIGTERM)

    def close(self) -> None:
        """Closes the state."""
        if self._database is not None:
            self._database.close()

    def _start(self) -> None:
        options = self._options
        tenants: dict[str, Tenant] = {}
        app = Sandbox(tenants)
        try:
            self._storage = storage = Server(
                options.host, options.storage_port, app.storage
            )  # it ends with the process
            settings = _settings(options)
            self._database = Database()
            tenants.update(_open_tenants(self._database, settings, options, storage.port))
            for tenant in tenants.values():
                for fault in options.faults:
                    tenant.faults.add(fault)
            server = Server(options.host, options.port, app)
        except ApiError as error:
            self._refuse(error.message)
        for served in (server, storage):
            threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        ready = _ready_line(server.url, storage.url, tenants)
        text = _in_words(ready) if os.environ.get(OUTPUT_VARIABLE) == "words" else json.dumps(ready) + "\n"
        sys.stdout.write(text)  # one write: `head -c` may end it
        sys.stdout.flush()

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
        "--tenant",
        type=_tenant_option,
        action="append",
        dest="tenants",
        metavar="NAME[=real[:N]|=empty]",
        help="a library and its content at the start: the real records, the first N of them, or none; "
        "repeatable (default: library=real)",
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
    parser.add_argument(
        "--password", default=Account().password, metavar="PW", help="of each tenant's account (%(default)s)"
    )
    parser.add_argument(
        "--stop-at-eof", action="store_true", help="end when standard input ends, for example with the parent process"
    )
    return parser


def _tenant_option(text: str) -> TenantOption:
    parts = _TENANT.fullmatch(text)
    if parts is None or (parts["kind"] == "empty" and parts["count"]):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME, NAME=real, NAME=real:N or NAME=empty")
    if parts["kind"] == "empty":
        return parts["name"], 0
    return parts["name"], int(parts["count"]) if parts["count"] else None


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
    """Makes and fills the requested tenants."""
    account = Account(password=options.password)
    clock = SystemClock()
    return {
        name: open_tenant(
            database,
            name,
            records=records,
            account=account,
            settings=settings,
            clock=clock,
            storage_port=storage_port,
        )
        for name, records in options.tenants or [("library", None)]
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
    any_tenant = next(iter(tenants.values()))
    lines.append(f"Account: {any_tenant['user']}  Password: {any_tenant['password']}")
    return "\n".join([*lines, f"Control: {ready['control']}", "--json prints all of this as JSON."]) + "\n"


if __name__ == "__main__":
    os._exit(
        main()
    )  # the usual end of Python waits for locks of threads that are in the middle of a request or a write
