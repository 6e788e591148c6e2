"""I10: after every use of a sign-in, its secrets are in the token store and nowhere else."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import dagster as dg
import pytest

from assets_defs.definitions import build_definitions
from assets_defs.factories import v3_tenants
from tests.assets_defs.installation import INSTANCE
from tests.cli import command
from tests.kept_texts import texts_below
from tests.sandbox.process import SandboxProcess
from tests.service.sign_in.home import SECONDS, Home, answer_in


@pytest.fixture
def confidential(home: Home) -> Home:
    """A tenant whose client registers itself with a secret."""
    return Home.make(home.folder, home.base_url, home.sandbox, 'client_auth = "client_secret_basic"')


def secrets_of(home: Home) -> set[str]:
    """Returns the stored secrets."""
    stored = home.stored
    assert stored.registration is not None
    assert stored.registration.client_secret
    secrets = {stored.registration.client_secret}
    if stored.grant is not None:
        secrets |= {stored.grant.access_token, stored.grant.refresh_token or stored.grant.access_token}
    return secrets


@pytest.mark.long
@pytest.mark.timeout(400)
def test_no_secret_of_a_run_is_left_anywhere(
    confidential: Home,
    sandbox: SandboxProcess,
    browser: Callable[..., dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Login, whoami, backup, daily refresh, a lost response and a revoked sign-in: logs, Dagster's storage, manifests, both outputs."""
    home, outputs, secrets = confidential, list[str](), {sandbox.password}
    dagster_home = home.folder / "dagster-home"
    dagster_home.mkdir()
    (dagster_home / "dagster.yaml").write_text(INSTANCE)
    monkeypatch.setenv("DAGSTER_HOME", str(dagster_home))
    answer = home.folder / "answer"
    visit = f"answer = consent(url, person)\nPath({str(answer)!r}).write_text(answer)\nget(answer)"
    variables = {**browser(visit), "DAGSTER_HOME": str(dagster_home)}

    def run(*arguments: str, status: int = 0) -> None:
        outcome = command.run(*arguments, folder=home.folder, variables=variables, seconds=2 * SECONDS)
        assert outcome.status == status, outcome.err
        outputs.extend((outcome.out, outcome.err))
        secrets.update(secrets_of(home))

    run("login", "new")
    secrets.add(answer_in(answer.read_text())["code"])
    run("whoami", "new", "--json")
    run("backup", "new", "--json")
    outputs += _renewed_by_dagster(home, dagster_home, success=True)
    secrets |= secrets_of(home)
    sandbox.fault("jump", seconds=4000, path="/users/me")
    sandbox.fault("reset", path="/oauth/token", when="after")
    run("whoami", "new", status=4)
    outputs += _renewed_by_dagster(home, dagster_home, success=False)
    run("backup", "new", status=4)
    outputs += capfd.readouterr()  # of the runs in this process
    allowed_places = (str(answer), str(home.folder / "browser"), str(home.folder / "sign-ins"))
    files = {path: text for path, text in texts_below(home.folder) if not path.startswith(allowed_places)}
    assert any(name.endswith("manifest.json") for name in files)
    assert any("dagster-home" in name and name.endswith(".db") for name in files)
    assert len(secrets) >= 7
    forms = {
        form
        for secret in secrets
        for form in (secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode())
    }
    findings = [
        (place, form) for place, text in [*files.items(), *enumerate(outputs)] for form in forms if form in text
    ]
    assert findings == []
    assert "Signature=" not in "".join(files.values()) + "".join(outputs)


def _renewed_by_dagster(home: Home, dagster_home: Path, *, success: bool) -> list[str]:
    """Runs the daily job and the hourly sensor as the daemon does; returns the messages of their events."""
    settings = home.settings
    assert v3_tenants(settings) == ["new"]
    definitions = build_definitions(settings)
    with dg.DagsterInstance.from_config(str(dagster_home)) as instance:
        stored = home.stored
        job = definitions.resolve_job_def("keep_signed_in")
        result = job.execute_in_process(instance=instance, raise_on_error=False)
        assert result.success is success
        assert (home.stored != stored) is success
        with dg.build_sensor_context(instance=instance, definitions=definitions) as context:
            watch = definitions.get_repository_def().get_sensor_def("sign_in_watch")
            tick = watch.evaluate_tick(context)
        [check] = tick.asset_events
        assert isinstance(check, dg.AssetCheckEvaluation)
        assert (check.passed, check.severity.value) == (success, "WARN" if success else "ERROR")
        assert success or "bookferry login new" in str(check.description)
        return [str(event) for event in result.all_events] + [str(tick)]


def test_a_definition_without_v3_has_none_of_it(home: Home) -> None:
    """No job, schedule or sensor without v3 tenants."""
    config = home.folder / "bookferry.toml"
    config.write_text(config.read_text().replace('"v3"', '"v2"'))
    repository = build_definitions(home.settings).get_repository_def()
    assert not {"keep_signed_in"} & set(repository.job_names)
    assert not any(schedule.job_name == "keep_signed_in" for schedule in repository.schedule_defs)
    assert "sign_in_watch" not in {sensor.name for sensor in repository.sensor_defs}
