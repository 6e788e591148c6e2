"""``python -m sandbox.oauth`` manages issued clients at the control endpoint of a running sandbox."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

_SECONDS = 30


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and prints its result as JSON; returns 1 if it was refused."""
    options = _parser().parse_args(arguments)
    request: Callable[[argparse.Namespace], Request] = options.request
    try:
        with urlopen(request(options), timeout=_SECONDS) as response:  # noqa: S310  # the address is the caller's own
            print(json.dumps(json.load(response), indent=2))  # noqa: T201  # the result
    except HTTPError as refusal:
        print(f"refused: {json.load(refusal)['error']['message']}", file=sys.stderr)  # noqa: T201
        return 1
    except (URLError, ValueError) as error:
        print(f"{options.control} cannot be reached: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sandbox.oauth", description="Manages the clients that an administrator issues."
    )
    parser.add_argument("--control", required=True, metavar="URL", help="`control` of the sandbox's ready line")
    parser.add_argument("--tenant", help="the library; optional if there is only one")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add(commands, "list", "list the issued clients", lambda options: _get(options, "clients"))
    _add(commands, "connections", "list the grants", lambda options: _get(options, "grants"))
    create = _add(commands, "create", "issue a client and show its secret, once", _create)
    create.add_argument("name")
    create.add_argument("redirect_uris", nargs="+", metavar="redirect-uri")
    create.add_argument("--scope", help="scopes separated by blanks (library:read assets:read)")
    create.add_argument("--post", action="store_true", help="use client_secret_post instead of client_secret_basic")
    create.add_argument(
        "--no-pkce", action="store_true", help="do not require PKCE, for connectors that send no code_challenge"
    )
    create.add_argument(
        "--surface", choices=("rest_api", "mcp_server"), default="rest_api", help="target of its tokens (%(default)s)"
    )
    rotation = _add(commands, "rotate", "issue a new secret", _rotate)
    rotation.add_argument("client_id")
    rotation.add_argument(
        "--changeover",
        type=float,
        default=86400,
        metavar="SECONDS",
        help="how long the old secret stays valid (%(default)s)",
    )
    revocation = _add(commands, "revoke", "end a client and all its connections at once", _revoke)
    revocation.add_argument("client_id")
    return parser


def _add(
    commands: Any, name: str, doc: str, request: Callable[[argparse.Namespace], Request]
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=doc, description=doc)
    parser.set_defaults(request=request)
    return parser


def _create(options: argparse.Namespace) -> Request:
    metadata = {
        "client_name": options.name,
        "redirect_uris": options.redirect_uris,
        "token_endpoint_auth_method": "client_secret_post" if options.post else "client_secret_basic",
        "pkce": not options.no_pkce,
        "surface": options.surface,
    }
    return _post(options, "clients", metadata | ({"scope": options.scope} if options.scope else {}))


def _rotate(options: argparse.Namespace) -> Request:
    return _post(options, "clients/rotate", {"client_id": options.client_id, "changeover_seconds": options.changeover})


def _revoke(options: argparse.Namespace) -> Request:
    return _post(options, "clients/revoke", {"client_id": options.client_id})


def _get(options: argparse.Namespace, path: str) -> Request:
    query = f"?{urlencode({'tenant': options.tenant})}" if options.tenant else ""
    return Request(f"{options.control}/oauth/{path}{query}")  # noqa: S310


def _post(options: argparse.Namespace, path: str, body: Mapping[str, Any]) -> Request:
    content = {**body, **({"tenant": options.tenant} if options.tenant else {})}
    return Request(f"{options.control}/oauth/{path}", data=json.dumps(content).encode())  # noqa: S310


if __name__ == "__main__":
    sys.exit(main())
