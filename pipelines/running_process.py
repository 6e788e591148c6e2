"""Names a process so that another one can find out later whether it still runs: machine, boot, number and start time."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import msgspec

_START_FIELD = 19
"""Index of `starttime` after the name of the program in /proc/PID/stat; `state` is the first (proc(5))."""


class RunningProcess(msgspec.Struct, frozen=True):
    """A process. `run`: the Dagster run that it works on."""

    host: str
    boot: str
    """The kernel's id of this boot; empty where the system has none."""
    namespace: str
    """In which `pid` is valid: containers of one machine have their own; empty where the system has none."""
    pid: int
    started: str
    run: str

    @property
    def text(self) -> str:
        """JSON, for a tag."""
        return msgspec.json.encode(self).decode()


def this_process(run: str) -> RunningProcess:
    """Returns the name of this process."""
    pid = os.getpid()
    return RunningProcess(_host(), _boot(), _namespace(), pid, _start_of(pid) or "", run)


def this_machine() -> str:
    """Returns a name of this machine since its last start, within which all processes share the monotonic clock; empty if it has none."""
    boot, clocks = _boot(), ""
    with suppress(OSError):
        clocks = str(Path("/proc/self/ns/time").readlink())
    return f"{boot} {clocks}".strip() if boot else ""


def this_owner() -> str:
    """Returns the name of this process for people: its number and its machine."""
    return f"process {os.getpid()} on {socket.gethostname()}"


def read_process(text: str) -> RunningProcess | None:
    """Returns the process that `RunningProcess.text` names; None for any other text."""
    with suppress(msgspec.MsgspecError):
        return _RUNNING_PROCESS_DECODER.decode(text)
    return None


def is_on_this_kernel(process: RunningProcess) -> bool:
    """Whether a process ran on this machine since its last start, if perhaps in another container: its file locks count here."""
    return bool(process.boot) and process.boot == _boot()


def is_gone(process: RunningProcess) -> bool | None:
    """Whether a process has ended; None where this machine cannot know it, as for one of another machine."""
    if process.host != _host():
        return None
    if process.boot != _boot():
        return True  # the machine was restarted
    if process.namespace != _namespace():
        return None
    return _start_of(process.pid) != process.started


def _host() -> str:
    return f"{socket.gethostname()} {_content('/etc/machine-id')}".strip()


def _boot() -> str:
    return _content("/proc/sys/kernel/random/boot_id")


def _namespace() -> str:
    with suppress(OSError):
        return str(Path("/proc/self/ns/pid").readlink())
    return ""


def _start_of(pid: int) -> str | None:
    """Returns when a process started, in units of its system; None if there is none, or only its exit status is left."""
    if Path("/proc/self/stat").exists():
        if not (stat := _content(f"/proc/{pid}/stat")):
            return None
        fields = stat.rpartition(")")[2].split()  # the name of the program may contain anything
        return None if fields[0] in "ZX" else fields[_START_FIELD]
    listed = subprocess.run(["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return listed.stdout.strip() or None


def _content(path: str) -> str:
    with suppress(OSError):
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    return ""


_RUNNING_PROCESS_DECODER = msgspec.json.Decoder(RunningProcess)
