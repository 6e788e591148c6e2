"""Runs docs/analysts.ipynb; `python -m tests.notebook` (in `make docs`) writes what it shows on a demonstration into the file."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client import KernelManager
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "docs" / "analysts.ipynb"
PATIENCE = 240
"""Seconds for the kernel to start, and for each cell."""


def run_notebook(source: Path, target: Path, folder: Path) -> None:
    """Run a notebook in `folder`, and write it with what it shows to `target`.

    The kernel is spoken to over sockets in the file system, so that it needs no free ports, and it leaves nothing in anybody's home.
    """
    notebook: Any = nbformat.read(source, as_version=4)
    with tempfile.TemporaryDirectory(prefix="notebook-") as home:
        places = dict.fromkeys(("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "MPLCONFIGDIR"), home)
        kernel = KernelManager(transport="ipc", connection_file=f"{home}/kernel.json")
        resources = {"metadata": {"path": str(folder)}}
        client = NotebookClient(
            notebook, km=kernel, timeout=PATIENCE, startup_timeout=PATIENCE, record_timing=False, resources=resources
        )
        try:
            client.execute(env={**os.environ, **places, "PYTHONPATH": str(ROOT)})
        finally:
            kernel.shutdown_kernel(now=True)
    for cell in notebook.cells:
        if cell.cell_type == "code":  # that a font cache is being made is no result
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata.pop("language_info", None)
    nbformat.write(notebook, target)


def main() -> None:
    """Anew in place; or, with arguments, from one file to another in a folder."""
    if len(sys.argv) > 1:
        run_notebook(*map(Path, sys.argv[1:]))
        return
    with tempfile.TemporaryDirectory() as checkout:
        (docs := Path(checkout, "docs")).mkdir()
        subprocess.run(
            [sys.executable, "-m", "cli.main", "demo", "--backup-only", "--json"],
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        run_notebook(NOTEBOOK, NOTEBOOK, docs)


if __name__ == "__main__":
    main()
