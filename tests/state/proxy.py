"""A way to the database that a test can delay and cut."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

import sqlalchemy as sa


class Proxy:
    """Forwards connections between two Unix sockets. `delays`: seconds by which the next commits are held up, first one first.

    `refuses`: ends new connections at once.
    """

    def __init__(self, address: str) -> None:
        url = sa.make_url(address)
        self._target = f"{url.query['host']}/.s.PGSQL.{os.environ.get('PGPORT', '5432')}"
        self._folder = tempfile.TemporaryDirectory(prefix="bookferry-proxy-")
        self.address = url.set(query={"host": self._folder.name}).render_as_string(hide_password=False)
        self.delays: list[float] = []
        self.refuses = False
        self._open: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(Path(self._folder.name, Path(self._target).name)))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End all connections, as a network does that is gone."""
        for end in self._open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def refuse(self) -> None:
        """Be gone until `refuses` is unset."""
        self.refuses = True
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.refuses:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._target)
                self._open += [client, server]
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._forward, args=(*ends, ends[0] is client), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, is_client: bool) -> None:
        with suppress(OSError), source, target:
            while content := source.recv(65536):
                if is_client and b"COMMIT" in content and self.delays:
                    time.sleep(self.delays.pop(0))
                target.sendall(content)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self.cut()
        self._folder.cleanup()
