"""`bookferry login TENANT`: a person signs in to a v3 library once, in a browser. All jobs use the stored sign-in."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from queue import Empty
from typing import Any

from rich.console import RenderableType

from cli.boundary import stop_message
from cli.output import Answer, ReadableTable, say
from pipelines.errors import BookferryError, ConfigurationError, ExitStatus, SignInError
from pipelines.file_access import inherited_umask
from pipelines.python_process import python_command
from pipelines.scopes import JOBS, SCOPES, abilities, jobs_document
from pipelines.service.redaction import redact
from pipelines.service.sign_in.login import AuthorizationRequest, Login, signing_in
from pipelines.service.sign_in.loopback_redirect import Arrivals, AuthorizationResponse, RedirectListener, read_pasted
from pipelines.service.sign_in.oauth_errors import ForeignResponseError
from pipelines.service.sign_in.stored_sign_in import Grant
from pipelines.service.threads import in_thread
from pipelines.settings.settings import Settings
from pipelines.sign_in_health import who_am_i
from pipelines.state.opening import open_state
from pipelines.store.stores import open_data

OPEN = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"
"""Opens the browser in another process: its output must not reach our stdout, and a browser in the foreground must not block us."""

NO_INPUT = (
    "The input ended before an address or code was pasted, so nobody was signed in. Run the same command again, and paste the answer "
    "while it waits."
)


STOPPED_AFTERWARDS = "Stopped after the sign-in, which is stored in {place}. `bookferry whoami {tenant}` shows it."


WAIT_SECONDS = 300.0
"""How long to wait for the answer of the browser."""

POLL_SECONDS = 0.2
"""A signal that the kernel gives to another thread does not wake the main thread: it looks for one so often."""


def log_in(
    settings: Settings,
    *,
    tenant: str,
    purpose: str | None,
    no_browser: bool,
    new_client: bool,
) -> Answer:
    """Sign in and store the sign-in. If anything fails, the earlier sign-in stays as it is. `purpose`: the only job to sign in for."""
    data = open_data(settings)
    data.prepare()
    scopes = JOBS[purpose].scopes if purpose else SCOPES
    with signing_in(settings, tenant, state=data.state) as login:
        question = login.ask(scopes, new_client=new_client)
        grant = _obtain_grant(login, question, browser=not no_browser)
        place = login.place
    with stop_message(STOPPED_AFTERWARDS.format(place=place, tenant=tenant)):
        person = _person(settings, tenant)
    return _answer(tenant, grant, person, place, _status(grant, purpose))


def _obtain_grant(login: Login, question: AuthorizationRequest, *, browser: bool) -> Grant:
    arrived = Arrivals()
    with ExitStack() as stack:
        listener = _listener(question.redirect_uri, arrived)
        if listener is not None:
            stack.enter_context(listener)
        paste = not browser or listener is None
        _explain(question, browser=browser, paste=paste, listening=listener is not None)
        if browser:
            _open(question.url, stack)
        if sys.stdin is None:
            arrived.put(None)
        elif paste or _is_terminal():
            in_thread(partial(read_pasted, sys.stdin.fileno(), arrived), "pasted", daemon=True)
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            try:
                arrival = arrived.get(timeout=POLL_SECONDS)
            except Empty:
                continue
            if arrival is None and paste:  # also if a browser might still bring the answer
                raise SignInError(NO_INPUT)
            if arrival is not None and (grant := _grant_from(login, question, arrival)) is not None:
                return grant
    # a library that does not know the client shows an error page and does not redirect
    remedy = "run it with --new-client"
    if login.is_issued:
        remedy = "check client_id and redirect_uri of the tenant in bookferry.toml"
    raise SignInError(
        f"Nobody answered within {WAIT_SECONDS:.0f} s. Run the same command again. If the library showed an error page instead of its "
        f"consent page, {remedy}."
    )


def _listener(redirect_uri: str, arrived: Arrivals) -> RedirectListener | None:
    """The listener for the browser's redirect; `None` if the redirect address is not on this machine."""
    if redirect_uri.startswith("https:"):
        return None
    try:
        return RedirectListener(redirect_uri, arrived)
    except OSError as error:
        raise ConfigurationError(
            f"Cannot listen at {redirect_uri}, where the browser brings the answer ({error.strerror}). Is another `bookferry login` "
            "waiting? End the program that uses that port, then run this again."
        ) from None


def _explain(question: AuthorizationRequest, *, browser: bool, paste: bool, listening: bool) -> None:
    say("Bookferry requests these scopes. On the consent page, untick what you do not want to allow:")
    for scope in question.scopes:
        jobs = [job for job in JOBS.values() if scope in job.scopes]
        say(f"  {scope:<14} {', '.join(job.name for job in jobs)}: {({**jobs[0].needs, **jobs[0].uses})[scope]}")
    say()
    say("Your browser opens now. If it does not, open this address:" if browser else "Open this address in a browser:")
    say(f"\n{question.url}\n")
    if paste:
        lost = "" if not listening else " (the browser cannot show that page, which is normal)"
        say(
            f"After your consent the browser goes to {question.redirect_uri}?…{lost}. Copy that whole address, or the code in it, "
            "and paste it here:"
        )
    else:
        say(f"Waiting for the answer at {question.redirect_uri} …")


def _open(url: str, stack: ExitStack) -> None:
    process = subprocess.Popen(
        python_command("-c", OPEN, url),
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
        start_new_session=True,
        umask=inherited_umask(),  # what the browser writes is not ours
    )
    stack.callback(_leave_alone, process)
    try:
        failed = process.wait(1.0) != 0
    except subprocess.TimeoutExpired:
        return
    if failed:
        paste = ", and paste the address where it ends here" if _is_terminal() else ""
        say(
            f"No browser could be opened. Open the address above in a browser on this machine{paste}, or run the command again with "
            "--no-browser."
        )


def _leave_alone(process: subprocess.Popen[bytes]) -> None:
    """Let the browser outlive this process, without the warning that it still runs."""
    if process.poll() is None:
        process.returncode = 0


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _grant_from(login: Login, question: AuthorizationRequest, arrival: AuthorizationResponse) -> Grant | None:
    try:
        return login.finish(question, arrival.parameters, code_alone=arrival.code_alone)
    except ForeignResponseError as error:
        say(f"Ignored: {redact(str(error))} Still waiting for yours.")
        return None


def _person(settings: Settings, tenant: str) -> dict[str, Any] | None:
    """The person who signed in; `None` if the request fails, because the sign-in is stored already."""
    try:
        return who_am_i(settings, tenant, state=open_state(settings))
    except SignInError:
        raise
    except BookferryError as error:
        say(f"Signed in, but the request for the name of the person failed: {error}")
        return None


def _status(grant: Grant, purpose: str | None) -> ExitStatus:
    """4 if the job of --for is not possible with these scopes; without --for, if a backup is not possible."""
    possible = {ability.job.name: ability.works for ability in abilities(grant.scopes)}
    return ExitStatus.COMPLETE if possible[purpose or "backup"] else ExitStatus.SIGN_IN


def _answer(tenant: str, grant: Grant, person: dict[str, Any] | None, place: str, status: ExitStatus) -> Answer:
    document = {
        "tenant": tenant,
        "signed_in": True,
        "person": person,
        "scopes": list(grant.scopes),
        "jobs": jobs_document(grant.scopes),
        "renewable": grant.refresh_token is not None,
        "kept_in": place,
    }
    lines: list[RenderableType] = [
        f"Signed in to '{tenant}'{_name(person)}. The sign-in is stored in {place}.",
        jobs_table(grant.scopes),
    ]
    if grant.refresh_token is None:
        lines.append("The library gave no refresh token: this sign-in ends with its access token.")
    return Answer(document, lines, status)


def _name(person: dict[str, Any] | None) -> str:
    if not person:
        return ""
    return f" as {person.get('name') or person.get('email') or person.get('id')}"


def jobs_table(scopes: Sequence[str]) -> ReadableTable:
    """The jobs that the scopes allow."""
    return ReadableTable(("job", "allowed"), [(ability.job.name, ability.sentence) for ability in abilities(scopes)])
