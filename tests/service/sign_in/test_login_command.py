"""`bookferry login` and `whoami` as people run them: with a browser, and on a server without a screen."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import parse_qsl, urlsplit

import pytest

from cli import login
from cli.commands.sign_in import STOPPED
from pipelines.errors import SignInError
from pipelines.scopes import SCOPES
from tests.cli import command
from tests.cli.command import BOOKFERRY, Outcome, environment
from tests.sandbox.process import SandboxProcess
from tests.service.sign_in.home import SECONDS, Home, answer_in, consent

BACKUP_SCOPES = ("library:read", "assets:read", "users:read", "tasks:read")


def run(home: Home, *arguments: str, variables: dict[str, str] | None = None, stdin: str = "") -> Outcome:
    """Runs `bookferry ARGUMENTS` to its end."""
    return command.run(*arguments, folder=home.folder, variables=variables or {}, typed=stdin, seconds=2 * SECONDS)


@pytest.mark.long
def test_login_by_a_browser(home: Home, browser: Callable[..., dict[str, str]], sandbox: SandboxProcess) -> None:
    """$BROWSER opens, the response arrives at a loopback address, and the command prints exactly one JSON document."""
    outcome = run(home, "login", "new", "--json", variables=browser())
    assert outcome.status == 0, outcome.err
    assert outcome.document["person"]["email"] == sandbox.user
    assert outcome.document["scopes"] == list(SCOPES)
    assert {job: state["complete"] for job, state in outcome.document["jobs"].items()} == {
        "backup": True,
        "migration": True,
    }
    assert home.read().headers["x-total"] == "120"
    query = dict(parse_qsl(urlsplit((home.folder / "address").read_text()).query))
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/callback", query["redirect_uri"])
    assert (query["response_type"], query["code_challenge_method"]) == ("code", "S256")
    assert query["resource"] == f"{home.base_url}/api/v3"
    assert "noise of a browser" not in outcome.out


@pytest.mark.long
def test_logging_in_again_registers_nothing(
    home: Home, browser: Callable[..., dict[str, str]], sandbox: SandboxProcess
) -> None:
    """service.md#clients: registrations a day are limited, so the stored client is reused. `--for` asks for its scopes alone."""
    for options, scopes in (([], SCOPES), (["--for", "backup"], BACKUP_SCOPES), (["--new-client"], SCOPES)):
        assert run(home, "login", "new", *options, variables=browser()).status == 0
        assert home.grant.scopes == tuple(scopes)
    assert sum(request["path"].endswith("/oauth/clients") for request in sandbox.requests()) == 2
    run(home, "login", "new", "--for", "nothing").assert_failed(2, "is not one of 'backup', 'migration'")


@pytest.mark.parametrize(
    ("ticked", "options", "status", "text"),
    [
        (["library:read"], [], 0, "works, but not what assets:read is for"),
        (["library:read", "assets:read"], ["--for", "migration"], 4, "does not work: library:write is missing"),
        (["users:read"], [], 4, "does not work: library:read is missing"),
        (list(BACKUP_SCOPES), ["--for", "backup"], 0, "everything"),
    ],
)
def test_fewer_scopes_say_which_job_will_not_work(  # noqa: PLR0917
    home: Home, browser: Callable[..., dict[str, str]], ticked: list[str], options: list[str], status: int, text: str
) -> None:
    """service.md#scopes: a token has the scopes that the person released on the consent page."""
    outcome = run(home, "login", "new", *options, variables=browser(f"get(consent(url, person, {ticked!r}))"))
    assert (outcome.status, text in outcome.out) == (status, True), outcome.out + outcome.err
    assert set(home.grant.scopes) == set(ticked)


def test_a_refused_sign_in(home: Home, browser: Callable[..., dict[str, str]]) -> None:
    """Exit 4; the browser says where to look."""
    act = 'print(get(consent(url, person, decision="refuse")).text, file=sys.stderr)'
    outcome = run(home, "login", "new", "--json", variables=browser(act))
    assert outcome.status == 4
    assert "refused on the consent page" in outcome.document["error"]
    assert "The terminal shows" in outcome.err
    assert home.stored.grant is None


@pytest.mark.long
def test_a_call_without_our_state_is_ignored_and_the_right_one_still_taken(
    home: Home, browser: Callable[..., dict[str, str]]
) -> None:
    """RFC 6749, 10.12: a foreign response is not used, and cannot end the sign-in either, also one that carries only an error."""
    act = (
        "answer = consent(url, person)\n"
        "get(re.sub('state=[^&]*', 'state=forged', answer))\n"
        "callback = answer.split('?')[0]\n"
        "without = '?' + re.sub('&?state=[^&]*', '', answer.split('?')[1])\n"
        "for query in ('', '?error=access_denied', '?error=access_denied&state=', '?code=stolen', without):\n"
        "    get(callback + query)\n"
        "assert get(answer.split('/callback')[0] + '/elsewhere').status_code == 404\n"
        "right = get(answer)\n"
        "assert 'You can close this window' in right.text and right.headers['cache-control'] == 'no-store'\n"
        "print('the browser is content', file=sys.stderr)\n"
    )
    outcome = run(home, "login", "new", variables=browser(act))
    assert (outcome.status, outcome.err.count("Ignored: The response")) == (0, 6), outcome.err
    assert "the browser is content" in outcome.err
    assert "stolen" not in outcome.err
    assert home.read().status_code == 200


@pytest.mark.parametrize("issued", [False, True])
def test_a_login_without_a_response_ends(
    home: Home, browser: Callable[..., dict[str, str]], monkeypatch: pytest.MonkeyPatch, *, issued: bool
) -> None:
    """The message says how to go on. If the library does not know an issued client, a new registration would not help."""
    if issued:
        home = Home.make(home.folder, home.base_url, tenant_lines='client_id = "nobody"\nclient_secret_env = "ISSUED"')
    for name, value in {"ISSUED": "of-nobody-at-all", **browser("pass")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(login, "WAIT_SECONDS", 0.1)
    with pytest.raises(SignInError, match="Nobody answered within 0 s") as ended:
        login.log_in(home.settings, tenant="new", purpose=None, no_browser=False, new_client=False)
    remedies = ("check client_id and redirect_uri", "--new-client")
    assert [remedy in str(ended.value) for remedy in remedies] == [issued, not issued]


@pytest.mark.parametrize("typed", ["", "\n\n", "http://127.0.0.1:1/callback?code=stolen&state=forged\n"])
def test_the_end_of_the_input_ends_a_login_without_a_browser(home: Home, typed: str) -> None:
    """`--no-browser < /dev/null`: the answer can no longer be pasted, so the command does not wait."""
    outcome = run(home, "login", "new", "--no-browser", stdin=typed)
    outcome.assert_failed(4, "The input ended before an address or code was pasted", "Run the same command again")
    assert home.stored.grant is None


@contextmanager
def started(home: Home, *options: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """`bookferry login new` in a process of its own."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [*BOOKFERRY, "login", "new", *options],
        cwd=home.folder,
        env=environment(**variables),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509  as a shell does
    )
    yield process
    process.kill()
    process.communicate()


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("options", [(), ("--no-browser", "--json")])
def test_a_stop_of_login_speaks_of_the_sign_in(
    home: Home, browser: Callable[..., dict[str, str]], number: signal.Signals, options: tuple[str, ...]
) -> None:
    """Nothing about snapshots: a login makes none. The earlier sign-in stays."""
    home.sign_in(["library:read"])
    grant = home.grant
    with started(home, *options, **browser("pass")) as process:
        assert process.stderr is not None
        assert any(re.search(r"Waiting for the answer|paste it here:", line) for line in process.stderr)
        process.send_signal(number)
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 128 + number
    assert [line for line in err.splitlines() if "noise of a browser" not in line] == [f"error: {STOPPED}"]
    assert not options or json.loads(out) == {"error": STOPPED, "exit_status": 128 + number}
    assert home.grant == grant


@pytest.mark.long
def test_a_stop_after_the_sign_in_says_that_it_is_stored(home: Home, browser: Callable[..., dict[str, str]]) -> None:
    """The request for the person's name hangs; the sign-in is there, and the message must not deny it."""
    assert home.sandbox is not None
    home.sandbox.reset("counts")
    home.sandbox.fault("hang", path="/users/me", seconds=10_000)
    with started(home, **browser()) as process:
        while home.sandbox.control_get("faults")["library"]:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 143
    assert "error: Stopped after the sign-in, which is stored in" in err
    assert home.grant.access_token


@pytest.mark.long
def test_pasting_the_code(home: Home) -> None:
    """On a server without a screen, a person copies only the code; PKCE ties it to this sign-in."""
    assert home.sandbox is not None
    with started(home, "--no-browser") as process:
        assert process.stderr is not None
        address = next(line for line in process.stderr if line.startswith("http"))
        code = answer_in(consent(address.strip(), home.sandbox))["code"]
        out, _ = process.communicate(f"{code}\n", timeout=SECONDS)
    assert process.returncode == 0
    assert "Signed in to 'new' as Backup" in out


def test_whoami(home: Home, sandbox: SandboxProcess) -> None:
    """User, scopes, jobs, ages; and the command to run if nobody is signed in."""
    run(home, "whoami", "new", "--json").assert_failed(4, "Nobody has signed in to 'new'", "bookferry login new")
    home.sign_in(["library:read"])
    document = run(home, "whoami", "new", "--json").document
    assert (document["person"]["email"], document["scopes"], document["renewable"]) == (
        sandbox.user,
        ["library:read"],
        True,
    )
    assert document["jobs"]["migration"]["lacks"][0] == "library:write"
    printed = run(home, "whoami", "new")
    assert f"<{sandbox.user}> is signed in to 'new'" in printed.out
    assert document["kept_in"].startswith(str(home.folder / "sign-ins"))
