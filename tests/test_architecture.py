"""The architecture: who may import whom, and nothing happens at import."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

ROOMS = {
    "cli": ("assets_defs", "resources", "pipelines"),
    "assets_defs": ("resources", "pipelines"),
    "resources": ("pipelines",),
    "pipelines": (),
    "sandbox": (),
    "sql": (),
}
"""Top folder → those it may import from. Nothing of ours imports the sandbox, and it imports nothing of ours."""

KEPT_TO = {
    "dagster": ("assets_defs", "resources", "cli"),
    "httpx": ("pipelines.service",),
    "duckdb": ("pipelines.store", "pipelines.analysis", "pipelines.migration", "cli"),
    "fsspec": ("pipelines.store",),
    "obstore": ("pipelines.store",),
    "pyiceberg": ("pipelines.store.iceberg",),
    "typer": ("cli",),
    "rich": ("cli",),
    # completion has a tenth of a second, and settings take that alone
    "tomllib": ("pipelines.settings.config_file", "pipelines.migration.mapping.mapping_file", "cli.completion"),
}
"""Package → the only places that may import it."""

MODULES = {
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__"): path
    for room in ROOMS
    for path in sorted((ROOT / room).rglob("*.py"))
}
"""Name → file of every module of the product."""


@cache
def tree(path: Path) -> ast.Module:
    """A file as its syntax tree."""
    return ast.parse(path.read_text("utf-8"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a file imports, wherever in it, for type checkers only too."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative"
            names = [f"{node.module}.{name.name}" for name in node.names]
            yield from ((node.lineno, name if name in MODULES else str(node.module)) for name in names)


def part_of(package: str, module: str) -> str:
    """The room or module right inside a package that a module is, or is in; empty for one that is elsewhere."""
    return module.removeprefix(f"{package}.").partition(".")[0] if module.startswith(f"{package}.") else ""


def arrows(package: str) -> dict[str, set[str]]:
    """Each room or module right inside a package → those that it imports from."""
    parts: dict[str, set[str]] = {part: set() for name in MODULES if (part := part_of(package, name))}
    for module, path in MODULES.items():
        if part := part_of(package, module):
            parts[part] |= {target for _line, name in imports(path) if (target := part_of(package, name))} - {part}
    return parts


def test_top_folders_import_downwards() -> None:
    """The direction of imports: `cli → assets_defs → resources → pipelines`; the sandbox and the rest know nothing of each other."""
    for module, path in MODULES.items():
        room = module.partition(".")[0]
        for line, name in imports(path):
            target_room = name.partition(".")[0]
            assert target_room not in ROOMS or target_room == room or target_room in ROOMS[room], (
                f"{module}:{line} imports {name}"
            )


@pytest.mark.long
def test_no_imports_form_a_circle() -> None:
    """Neither modules nor, in any package, its rooms import each other in a circle; `TopologicalSorter` names one that does."""
    modules = {
        name: {target for _line, target in imports(path) if target in MODULES} - {name}
        for name, path in MODULES.items()
    }
    TopologicalSorter(modules).prepare()
    for package in {name.rpartition(".")[0] for name in MODULES if "." in name}:
        TopologicalSorter(arrows(package)).prepare()


def test_packages_stay_where_they_belong() -> None:
    """Pipelines knows no Dagster, and only `pipelines.service` speaks HTTP."""
    for module, path in MODULES.items():
        for line, name in imports(path):
            places = KEPT_TO.get(name.partition(".")[0])
            at_home = (
                places is None
                or module.startswith("sandbox")
                or any(f"{module}.".startswith(f"{place}.") for place in places)
            )
            assert at_home, f"{module}:{line} imports {name}"


def test_dagster_sees_annotations_as_they_are() -> None:
    """Dagster compares annotations by identity: deferred ones are strings to it."""
    deferred = [
        module
        for module, path in MODULES.items()
        if module.startswith(("assets_defs", "resources")) and "__future__" in {name for _line, name in imports(path)}
    ]
    assert deferred == []


WATCH = """
import importlib, os, sys

root, modules = sys.argv[1], sys.argv[2:]
touched = []
STANDARD = os.path.dirname(sys.modules["encodings"].__path__[0]) + "/"
MOMENTS = {"now", "utcnow", "today", "start_new_thread"}
OS = os.getenv.__code__.co_filename
ENVIRONMENT = {"__getitem__", "__iter__", "__len__", "copy", "getenv"}
CLOCK_AND_SYSTEM = {"time", "posix", "_socket", "_io", "io", "_sqlite3"}
EVENTS = {"socket.connect", "socket.bind", "subprocess.Popen", "os.mkdir", "os.remove", "os.rename", "sqlite3.connect"}

def standard(file):
    return file.startswith(("<frozen", STANDARD)) and "site-packages" not in file and "importlib._b" not in file

def note(frame, action):
    # Our own line that led here by way of the standard library; what other packages do is their business.
    while frame.f_back is not None and standard(frame.f_code.co_filename):
        frame = frame.f_back
    if frame.f_code.co_filename.startswith(root) and "site-packages" not in frame.f_code.co_filename:
        touched.append(f"{frame.f_code.co_filename}:{frame.f_lineno} {action}")

def watch(frame, event, argument):
    if event == "c_call":
        if argument.__module__ in CLOCK_AND_SYSTEM and frame.f_code.co_filename.startswith(root) or argument.__name__ in MOMENTS:
            note(frame, f"calls {argument.__name__}")
    elif event == "call" and frame.f_code.co_filename == OS and frame.f_code.co_name in ENVIRONMENT:
        note(frame, "reads the environment")

def audit(event, arguments):
    if event in EVENTS or event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wxa+"):
        note(sys._getframe(1), event)

sys.dont_write_bytecode = True
sys.addaudithook(audit)
sys.setprofile(watch)
for module in modules:
    importlib.import_module(module)
sys.setprofile(None)
print("\\n".join(sorted(set(touched))))
"""
"""Imports modules, and prints what of the machine they touched: files written, sockets, processes, clock and environment."""


def imported_alone(*modules: str) -> str:
    """What importing these modules in a process of their own touches."""
    command = [sys.executable, "-X", "utf8", "-W", "ignore", "-c", WATCH, str(ROOT), *modules]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return process.stdout.strip()


@pytest.mark.long
def test_nothing_happens_at_import() -> None:
    """No environment, file, network, clock at import, so that commands are quick and Dagster may load what it likes."""
    assert imported_alone(*(module for module in sorted(MODULES) if not module.endswith("__main__"))) == ""


def test_decoders_of_types_are_made_at_import() -> None:
    """The library msgspec builds the decoder of a type at its first use; where two threads are the first together, the process crashes."""
    late = [
        f"{module}:{node.lineno}"
        for module, path in MODULES.items()
        for function in ast.walk(tree(path))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"msgspec.json.decode", "msgspec.msgpack.decode"}
        and any(keyword.arg == "type" for keyword in node.keywords)
    ]
    assert late == []
