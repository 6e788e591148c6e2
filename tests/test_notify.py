"""The failure hook and the dead-man's switch: one call a run, by a command or a web address, and nothing depends on whether it works."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipelines.errors import ConfigurationError
from pipelines.notify import Ending, notify
from pipelines.service import webhook
from pipelines.settings.config_file import load_settings
from pipelines.settings.retention_and_notify import Hook
from pipelines.settings.settings import Settings
from tests.service.scripted import Answer, Received, ScriptedServer
from tests.variables import with_variables

COMPLETE = Ending(job="backup", result="complete", tenant="old", snapshot="20261121T020000Z", run="r1")
FAILED = Ending(job="backup", result="failed", tenant="old", message="The disk is full.")
SECRET = "3f0c9d6e-the-address-is-a-secret"

TENANTS = """
[tenants.old]
base_url = "https://library.example.org"
api = "v2"
username_env = "OLD_USER"
password_env = "OLD_PASSWORD"
"""

Configure = Callable[..., Settings]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """Settings with a table `notify`, and more behind the tenant."""

    def make(notify: str, further_tables: str = "") -> Settings:
        path = tmp_path / "bookferry.toml"
        path.write_text(f"[notify]\n{notify}\n{TENANTS}{further_tables}")
        return load_settings(path)

    return make


def writer(path: Path, script: str = "") -> str:
    """A command, as TOML, that keeps its standard input and its variables; `script` is what it does then."""
    code = (
        "import json, os, sys; "
        "told = {'given': json.load(sys.stdin), 'env': dict(os.environ), 'cwd': os.getcwd()}; "
        f"open({str(path)!r}, 'a').write(json.dumps(told) + '\\n'); {script}"
    )
    return json.dumps([sys.executable, "-c", code])


def kept(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def told(settings: Settings, ending: Ending, **variables: str) -> tuple[str | None, list[float]]:
    """What went wrong, if anything did, and the pauses between tries."""
    pauses: list[float] = []
    return with_variables(variables, notify, settings, ending, sleep=pauses.append), pauses


def test_a_command_gets_the_facts_and_no_secret(configure: Configure, tmp_path: Path) -> None:
    """As JSON on standard input and as variables; in the folder of bookferry.toml; without the variables that hold secrets (I10)."""
    file = tmp_path / "told"
    settings = configure(
        f"success = {writer(file)}", '[iceberg]\nuri_env = "PLACE"\nproperties_env = {token = "TOKEN"}\n'
    )
    secrets = dict.fromkeys(("OLD_PASSWORD", "PLACE", "TOKEN"), "p4ssw0rd-p4ssw0rd")
    problem, _ = told(settings, COMPLETE, **secrets, HOME="/somewhere")
    assert problem is None
    (call,) = kept(file)
    assert call["given"] == {**msgspec.to_builtins(COMPLETE), "ok": True, "at": call["given"]["at"]}
    shown = {name: value for name, value in call["env"].items() if name.startswith("BOOKFERRY_")}
    assert shown == {
        "BOOKFERRY_JOB": "backup",
        "BOOKFERRY_RESULT": "complete",
        "BOOKFERRY_TENANT": "old",
        "BOOKFERRY_SNAPSHOT": "20261121T020000Z",
        "BOOKFERRY_MESSAGE": "",
        "BOOKFERRY_RUN": "r1",
    }
    assert (call["env"]["HOME"], call["cwd"]) == ("/somewhere", str(tmp_path))
    assert not {*secrets} & {*call["env"]}


@pytest.mark.long
def test_a_tenant_may_have_a_switch_of_its_own(configure: Configure, tmp_path: Path) -> None:
    """One switch for two libraries would be held by either of them."""
    file, own_file = tmp_path / "told", tmp_path / "own"
    second_tenant = (
        f'[tenants.new]\nbase_url = "https://h"\napi = "v3"\n[tenants.new.notify]\nsuccess = {writer(own_file)}\n'
    )
    settings = configure(f"success = {writer(file)}\nfailure = {writer(file)}", second_tenant)
    for ending in (COMPLETE, msgspec.structs.replace(COMPLETE, tenant="new"), Ending(job="retention", result="failed")):
        assert told(settings, ending) == (None, [])
    assert [call["given"]["tenant"] for call in kept(own_file)] == ["new"]
    assert [call["given"]["tenant"] for call in kept(file)] == ["old", ""]
    assert told(settings, msgspec.structs.replace(FAILED, tenant="new")) == (None, [])
    assert len(kept(file)) == 2, "its own table stands for the whole one"


@pytest.mark.parametrize(
    ("answers", "requests", "problem"),
    [
        ([200], 1, None),
        ([503, 200], 2, None),
        ([429, None, 204], 3, None),
        ([None, None, None], 3, "could not be reached (RemoteProtocolError)"),
        ([404], 1, "answered 404"),
        ([302], 1, "answered 302"),
    ],
)
def test_a_web_address_is_tried_three_times(
    configure: Configure, answers: list[int | None], requests: int, problem: str | None
) -> None:
    """A POST, as the usual services for such switches take it, again where that may help; a redirect is not followed.

    The address is never shown (I10).
    """
    waiting = list(answers)

    def script(_: Received) -> Answer:
        status = waiting.pop(0)
        if status is None:
            raise ConnectionError
        return Answer(status=status, headers={"location": "/elsewhere"})

    with ScriptedServer(script) as server:
        message, pauses = told(configure('failure = "PING"'), FAILED, PING=f"{server.url}/{SECRET}")
        assert {(call.method, call.target) for call in server.received} == {("POST", f"/{SECRET}")}
        assert len(server.received) == requests
        assert server.received[0].headers["content-type"] == "application/json"
        assert json.loads(server.received[0].body)["message"] == "The disk is full."
    assert pauses == pytest.approx([1.0, 2.0][: requests - 1], abs=0.1)
    if problem is None:
        assert message is None
    else:
        assert message is not None
        assert message.startswith("The backup of old (failed) could not be reported: the address at 127.0.0.1 ")
        assert problem in message
        assert SECRET not in message


def test_who_stops_a_run_does_not_wait(configure: Configure) -> None:
    """One try, no pause."""
    with ScriptedServer(lambda _: Answer(status=503)) as server:
        stopped = Ending(job="backup", result="stopped", tenant="old")
        message, pauses = told(configure('failure = "PING"'), stopped, PING=server.url)
        assert (message is not None, pauses, len(server.received)) == (True, [], 1)


def test_a_command_that_fails_is_told_with_what_it_printed(configure: Configure, tmp_path: Path) -> None:
    """And is not repeated: it may have done its work."""
    file = tmp_path / "told"
    script = "print('no such recipient, password=hunter2'); sys.exit(3)"
    message, pauses = told(configure(f"failure = {writer(file, script)}"), FAILED)
    assert message is not None
    assert "ended with 3: no such recipient, password=[redacted]" in message
    assert (len(kept(file)), pauses) == (1, [])
    message, _ = told(configure('failure = ["./no-such-command"]'), FAILED)
    assert message is not None
    assert "the command ./no-such-command could not be started: No such file or directory." in message


def test_a_command_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    """The lock that its child holds is free afterwards."""
    reader, held = tmp_path / "pipe", Hook(command=("sh", "-c", "exec 3>pipe; sleep 100000 & sleep 100000"))
    os.mkfifo(reader)
    end = os.open(reader, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(webhook.WebhookError, match=r"the command sh took more than 0\.5 seconds and was ended"):
        webhook.call(held, b"{}", {"PATH": os.environ["PATH"]}, folder=tmp_path, sleep=lambda _: None, seconds=0.5)
    os.set_blocking(end, True)
    assert os.read(end, 1) == b"", "the end, which there is when no writer is left"
    os.close(end)


@pytest.mark.parametrize(
    ("notify", "message"),
    [
        (f'success = "https://monitoring.example.org/{SECRET}"', "notify.success: must be a command"),
        ("failure = []", "notify.failure: must be a command as a list of words"),
        (f'failure = ["", "{SECRET}"]', "notify.failure: must begin with the name of a command"),
        ('sucess = ["x"]', "unknown key notify.sucess (did you mean 'success'?)"),
    ],
)
def test_a_mistake_is_told_without_the_address(configure: Configure, notify: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        configure(notify)
    assert message in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, "names the environment variable PING, which is not set"),
        ({"PING": f"http://h/{SECRET}"}, "whose value must be https://"),
        ({"PING": f"https://me:{SECRET}@h/x"}, "whose value must not have a user name"),
    ],
)
def test_a_variable_that_does_not_hold_an_address(
    configure: Configure, variables: dict[str, str], message: str
) -> None:
    """Told as a call that could not be made: the backup is what it is."""
    problem, _ = told(configure('failure = "PING"'), FAILED, **variables)
    assert problem is not None
    assert message in problem
    assert SECRET not in problem


def test_no_repr_shows_an_address(configure: Configure) -> None:
    """I10: they end up in tracebacks and logs."""
    settings = configure('success = "PING"\nfailure = ["tell", "{SECRET}"]'.replace("{SECRET}", SECRET))
    assert SECRET not in repr(settings) + repr(
        with_variables({"PING": f"https://h/{SECRET}"}, settings.notify.hook, "success")
    )
