"""`bookferry ui` as a process: asked over GraphQL, as its pages ask, and ended with all that it started."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

import pytest

from tests.cli.command import PATIENCE, Installation

RUNS = "{runsOrError {... on Runs {results {runId status jobName tags {key value} assetSelection {path}}}}}"
REPOSITORIES = "{repositoriesOrError {... on RepositoryConnection {nodes {name location {name}}}}}"
LAUNCH = """
mutation Launch($parameters: ExecutionParams!) {
  launchRun(executionParams: $parameters) {__typename ... on LaunchRunSuccess {run {runId}} ... on PythonError {message}}
}
"""
TERMINATE = """
mutation Terminate($run: String!) {
  terminateRun(runId: $run, terminatePolicy: SAFE_TERMINATE) {__typename ... on TerminateRunFailure {message} ... on PythonError {message}}
}
"""
RUN = "query Run($run: ID!) {runOrError(runId: $run) {... on Run {status}}}"
ENDED = {"SUCCESS", "FAILURE", "CANCELED"}


class WebInterface:
    """`bookferry ui` in an installation's folder for the length of a block. `options` are those of `Installation.start`."""

    def __init__(self, installation: Installation, *arguments: str, **options: Any) -> None:
        self._port = _free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._installation = installation
        self._arguments = arguments
        self._options = options

    def __enter__(self) -> Self:
        arguments = ("ui", "--port", str(self._port), *self._arguments)
        self.process = self._installation.start(*arguments, start_new_session=True, **self._options)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def stop(self) -> tuple[str, str]:
        """End it by SIGTERM, and wait until none of its processes is left. Returns its output."""
        self.process.send_signal(signal.SIGTERM)
        output = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, output
        self._wait_until_nobody_is_left()
        return output

    def ask(self, query: str, variables: Mapping[str, Any] = {}) -> Any:
        """The data of a GraphQL answer, once the interface answers."""
        question = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", question, {"content-type": "application/json"})
        while self.process.poll() is None:
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)["data"]
            except OSError:
                time.sleep(0.3)
        pytest.fail(f"the interface ended: {self.process.stderr.read() if self.process.stderr else ''}")

    def runs(self) -> list[dict[str, Any]]:
        """All runs; the tags of each as a dictionary."""
        runs = self.ask(RUNS)["runsOrError"]["results"]
        return [{**run, "tags": {tag["key"]: tag["value"] for tag in run["tags"]}} for run in runs]

    def launch(self, job: str, assets: Sequence[Sequence[str]] = (), **tags: str) -> str:
        """Launch a job, or some assets of it. Returns the run's id."""
        (repository,) = self.ask(REPOSITORIES)["repositoriesOrError"]["nodes"]
        selector = {
            "repositoryName": repository["name"],
            "repositoryLocationName": repository["location"]["name"],
            "pipelineName": job,
            "assetSelection": [{"path": list(path)} for path in assets] or None,
        }
        metadata = {"tags": [{"key": key, "value": value} for key, value in tags.items()]}
        launched = self.ask(LAUNCH, {"parameters": {"selector": selector, "executionMetadata": metadata}})["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["runId"])

    def terminate(self, run: str) -> None:
        """Terminate a run, as the button of the pages does."""
        ended = self.ask(TERMINATE, {"run": run})["terminateRun"]
        assert ended["__typename"] == "TerminateRunSuccess", ended

    def wait_for(self, run: str, *statuses: str) -> str:
        """Wait until a run has one of these statuses, or has ended. Returns its status."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            status = str(self.ask(RUN, {"run": run})["runOrError"]["status"])
            if status in ENDED.union(statuses):
                return status
            time.sleep(0.3)
        pytest.fail("the run does not end")

    def _wait_until_nobody_is_left(self) -> None:
        """Dagster's code server notices a few seconds later that it is not needed."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                os.killpg(self.process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.3)
        pytest.fail("a process of the interface is still there")


def _free_port() -> int:
    """One that stays free until it is used: not one of those that systems choose for a request of any port."""
    for port in random.sample(range(15_000, 30_000), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    pytest.fail("no port is free")
