"""The files of `deploy/`, without a container daemon or a cluster: their form, what they name, and the steps of the image."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from pipelines.settings.config_file import load_settings
from tests.cli.command import ROOT
from tests.postgres import database, postgres_server

DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text("utf-8")
INSTANCES = ("compose/dagster.yaml", "celery/dagster.yaml")


@pytest.fixture(scope="module")
def history() -> Iterator[str]:
    """The address of a database for Dagster's history."""
    with postgres_server() as server, database(server) as address:
        yield address


def read(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text("utf-8"))


def instructions(keyword: str) -> list[str]:
    """The arguments of all instructions of one kind, with continued lines joined."""
    return re.findall(rf"^{keyword} (.+)$", DOCKERFILE.replace("\\\n", " "), re.MULTILINE)


@pytest.mark.long
@pytest.mark.parametrize("name", INSTANCES)
def test_dagster_accepts_the_instance(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, history: str) -> None:
    """Its storage, its launcher and its limits, with a real database for the history."""
    import dagster as dg  # noqa: PLC0415  takes a second

    monkeypatch.setenv("DAGSTER_POSTGRES", history)
    monkeypatch.setenv("CELERY_BROKER", "memory://")
    monkeypatch.setenv("CELERY_BACKEND", "cache+memory://")
    (tmp_path / "dagster.yaml").write_bytes((DEPLOY / name).read_bytes())
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        limits = instance.get_concurrency_config()
        assert (limits.pool_config.default_pool_limit, str(limits.pool_config.pool_granularity)) == (
            1,
            "PoolGranularity.RUN",
        )
        assert limits.run_queue_config is not None
        assert limits.run_queue_config.max_concurrent_runs == 10
        assert instance.run_monitoring_enabled
        assert not instance.nux_enabled
        assert type(instance.run_launcher).__name__ == (
            "CeleryRunLauncher" if "celery" in name else "DefaultRunLauncher"
        )
        assert instance.get_runs(limit=1) == []


class TestKubernetes:
    """The pods that Dagster and its chart make of the values."""

    values = read("kubernetes/values.yaml")

    def run_pod(self) -> tuple[Any, Any]:
        """Pod and container of a run, by the code of Dagster's launcher."""
        from dagster_k8s.container_context import K8sContainerContext  # noqa: PLC0415  a second
        from dagster_k8s.job import (  # noqa: PLC0415
            DagsterK8sJobConfig,
            UserDefinedDagsterK8sConfig,
            construct_dagster_k8s_job,
        )

        config = self.values["runLauncher"]["config"]["k8sRunLauncher"]
        of_runs = {re.sub("([A-Z])", r"_\1", name).lower(): value for name, value in config["runK8sConfig"].items()}
        context = K8sContainerContext(
            env_secrets=[secret["name"] for secret in config.get("envSecrets", ())],
            volumes=config.get("volumes", ()),
            volume_mounts=config.get("volumeMounts", ()),
            run_k8s_config=UserDefinedDagsterK8sConfig.from_dict(of_runs),
        )
        [deployment] = self.values["dagster-user-deployments"]["deployments"]
        if deployment["includeConfigInLaunchedRuns"]["enabled"]:  # what the chart then writes into the code location
            context = context.merge(
                K8sContainerContext(resources=deployment["resources"], volumes=deployment["volumes"])
            )
        job = construct_dagster_k8s_job(
            DagsterK8sJobConfig("bookferry", "/opt/dagster/dagster_home", instance_config_map="instance"),
            args=["dagster", "api", "execute_run"],
            job_name="run",
            user_defined_k8s_config=context.run_k8s_config,
        )
        spec = job.to_dict()["spec"]["template"]["spec"]
        return spec, spec["containers"][0]

    def test_a_run_has_what_it_needs_and_is_restricted(self) -> None:
        """Memory and files not of the code location, which needs less; by Kubernetes' Pod Security Standard "restricted"."""
        pod, container = self.run_pod()
        assert container["resources"]["limits"] == {"memory": "2Gi"}
        assert pod["termination_grace_period_seconds"] == 180
        mounts = {mount["name"]: mount["mount_path"] for mount in container["volume_mounts"]}
        assert mounts.items() >= {"configuration": "/etc/bookferry", "work": "/var/lib/bookferry"}.items()
        assert "bookferry" in str(container["env_from"])
        security, restricted = pod["security_context"], container["security_context"]
        assert (security["run_as_non_root"], security["seccomp_profile"]["type"]) == (True, "RuntimeDefault")
        assert security["fs_group"] == security["run_as_user"] == 10001
        assert (restricted["allow_privilege_escalation"], restricted["capabilities"]["drop"]) == (False, ["ALL"])
        kinds = {kind for volume in pod["volumes"] for kind, content in volume.items() if content and kind != "name"}
        assert kinds <= {"config_map", "empty_dir", "secret"}


class TestLoopback:
    """The script that lets each container of compose have a network of its own."""

    SCRIPT = DEPLOY / "compose" / "loopback.py"

    def test_each_client_is_connected_anew(self) -> None:
        """The other container may have restarted, or be away for a moment. A container is stopped by SIGTERM to its first process."""
        client = (
            "import signal, socket, sys\n"
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
            "for line in sys.stdin:\n"
            "    try:\n"
            "        with socket.create_connection(('127.0.0.1', int(line)), 20) as connection:\n"
            "            connection.sendall(b'question'); connection.shutdown(socket.SHUT_WR)\n"
            "            print(connection.makefile().read() or 'nobody', flush=True)\n"
            "    except OSError:\n"
            "        print('nobody', flush=True)\n"
        )
        with socket.create_server(("127.0.0.2", 0)) as service:
            port = service.getsockname()[1]
            words = [sys.executable, str(self.SCRIPT), f"{port}=127.0.0.2:{port}", "--", sys.executable, "-c", client]
            with subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as process:
                assert process.stdin is not None
                assert process.stdout is not None
                for number in range(3):
                    print(port, file=process.stdin, flush=True)
                    if number == 1:  # away
                        service.close()
                        assert process.stdout.readline() == "nobody\n"
                        service = socket.create_server(("127.0.0.2", port))  # noqa: PLW2901  it is back
                        continue
                    connection, _ = service.accept()
                    with connection:
                        assert connection.makefile().read() == "question"
                        connection.sendall(b"answer")
                    assert process.stdout.readline() == "answer\n"
                process.terminate()
                assert process.wait(60) == 7, "the status is that of the command"
            service.close()


@pytest.mark.long
def test_compose_sets_the_variables_that_its_configuration_names(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = read("compose/compose.yaml")["x-bookferry"]["environment"]
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    settings = load_settings(DEPLOY / "compose" / "bookferry.toml")
    assert (settings.bucket, settings.state) == ("s3://backups/bookferry", "postgres")
    assert settings.postgres() == environment["BOOKFERRY_POSTGRES"]
    settings.check_sign_in("demo")


def lend(lock: Path, site: Path) -> None:
    """Give an environment what a lock names, and nothing else, out of the one of the tests: installing it would take minutes."""
    for line in lock.read_text("utf-8").splitlines():
        if not line[:1].isalnum():
            continue
        requirement = Requirement(line.rstrip(" \\"))
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        lent = distribution(requirement.name)
        assert lent.version in requirement.specifier, requirement.name
        for top in {file.parts[0] for file in lent.files or ()} - {".."}:
            if not (site / top).exists():
                (site / top).symlink_to(str(lent.locate_file(top)))


@pytest.mark.long
def test_the_steps_of_the_image_make_a_code_location_that_is_well(tmp_path: Path) -> None:
    """Its first stage in a bare folder, then its command and its health check in an empty working folder."""
    built, opt = tmp_path / "build", tmp_path / "opt"
    first_stage = DOCKERFILE.replace("\\\n", " ").split("\nFROM ")[1]
    built.mkdir()
    for keyword, arguments in re.findall(r"^(COPY|RUN) (.+)$", first_stage, re.MULTILINE):
        if keyword == "COPY":
            *sources, target = arguments.split()
            for source in sources:
                place = built / target if len(sources) == 1 and target != "./" else built / source
                place.parent.mkdir(parents=True, exist_ok=True)
                (shutil.copytree if (ROOT / source).is_dir() else shutil.copy)(ROOT / source, place)
        else:
            step = arguments.replace("/opt/", f"{opt}/").replace("python -m venv", f"{sys.executable} -m venv")
            lock = re.search(r"--require-hashes -r (\S+)$", step)
            step = step if lock is None else f"{opt}/bookferry/bin/python -m pip uninstall --yes setuptools"
            process = subprocess.run(["bash", "-c", step], cwd=built, capture_output=True, text=True, check=False)
            assert process.returncode == 0, (step, process.stderr[-2000:])
            if lock is not None:
                [site] = (opt / "bookferry" / "lib").glob("python*/site-packages")
                lend(built / lock[1], site)
    shutil.rmtree(built)

    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    config = home / "bookferry.toml"
    config.write_text('data = "data"\n\n[tenants.demo]\nbase_url = "https://library.example.org"\napi = "v3"\n')
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    options: dict[str, Any] = {
        "cwd": work,
        "env": {
            "PATH": f"{opt / 'bookferry' / 'bin'}:/usr/bin:/bin",
            "HOME": str(home),
            "PYTHONSAFEPATH": "1",
            "BOOKFERRY_CONFIG": str(config),
            "DAGSTER_HOME": str(home),
        },
    }

    def local_command(command: str) -> list[str]:
        """A command of the image on this machine; the program of a package that is lent belongs to the other environment."""
        return ["env", "python", "-m", *json.loads(command.replace("4000", port).replace("0.0.0.0", "127.0.0.1"))]

    check = local_command(instructions("HEALTHCHECK")[0].partition("CMD ")[2])
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(local_command(instructions("CMD")[-1]), stdout=log, stderr=log, **options)
        try:
            deadline = time.monotonic() + 120
            while subprocess.run(check, capture_output=True, check=False, **options).returncode:
                still_starting = server.poll() is None and time.monotonic() < deadline
                assert still_starting, (tmp_path / "log").read_text("utf-8")
            version = subprocess.check_output(["env", "bookferry", "--version"], text=True, **options)
            assert version.startswith("bookferry ")
            assert [*work.iterdir()] == []
        finally:
            server.terminate()
            server.wait(60)
