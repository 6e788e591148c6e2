"""Forwards ports of this container's own machine to other containers, and runs a command beside that.

    python loopback.py 8000=sandbox:8000 9000=s3:9000 -- COMMAND ...

Bookferry sends credentials without https to its own machine only. So every container keeps a network of its own, and each can restart
without the others: a connection is made anew for each client.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while content := await reader.read(65536):
            writer.write(content)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def _forward(host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):  # nobody is there at this moment: the client sees its connection end
        there_reader, there_writer = await asyncio.open_connection(host, port)
        await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer))
        there_writer.close()
    writer.close()


async def _run(forwards: Sequence[str], command: Sequence[str]) -> int:
    for forward in forwards:
        own, _, place = forward.partition("=")
        host, _, port = place.partition(":")
        await asyncio.start_server(partial(_forward, host, int(port)), "127.0.0.1", int(own))
    process = await asyncio.create_subprocess_exec(*command)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, process.send_signal, number)
    status = await process.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    split = sys.argv.index("--")
    sys.exit(asyncio.run(_run(sys.argv[1:split], sys.argv[split + 1 :])))
