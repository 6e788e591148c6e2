"""Help, version, mistakes in the command itself, and `init`."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.settings.config_file import load_settings
from tests.cli.command import run


@pytest.mark.parametrize("group", [[], ["snapshots"]])
def test_without_a_command_there_is_help(group: list[str], tmp_path: Path) -> None:
    """Exit 2: a script that forgot the command must not take it for a success."""
    outcome = run(*group, folder=tmp_path)
    assert (outcome.status, outcome.err) == (2, "")
    assert "COMMAND" in outcome.out


@pytest.mark.long
def test_options_before_the_command(tmp_path: Path) -> None:
    """--config and --json mean the same before a command as after it; what stands after it has the last word."""
    outcome = run("--json", "--config", "mine.toml", "init", folder=tmp_path)
    assert outcome.document["config"] == str(tmp_path / "mine.toml")
    listed = run("--config", "mine.toml", "--json", "snapshots", "list", folder=tmp_path)
    assert listed == run("snapshots", "list", "--config", "mine.toml", "--json", folder=tmp_path)
    assert listed.document == {"snapshots": [], "damaged": []}
    run("--config", "mine.toml", "--json", "snapshots", "list", "--config", "no.toml", folder=tmp_path).assert_failed(
        2, "no.toml"
    )


@pytest.mark.parametrize(
    ("variables", "colored"),
    [({}, False), ({"FORCE_COLOR": "1"}, True)],
)
def test_colors_in_a_pipe(variables: dict[str, str], colored: bool, tmp_path: Path) -> None:
    for command in (("query", "--list-examples"), ("--help",)):
        outcome = run(*command, folder=tmp_path, variables=variables)
        assert (outcome.status, "\x1b[" in outcome.out) == (0, colored), outcome


def test_init_writes_a_file_and_adds_a_library(tmp_path: Path) -> None:
    """What is in the file stays as it is, comments and permissions, too."""
    first_outcome = run("init", "--tenant", "old", "--base-url", "https://library.example.com", folder=tmp_path)
    assert (first_outcome.status, first_outcome.err) == (0, "")
    assert "export OLD_USER=... OLD_PASSWORD=..." in first_outcome.out
    assert first_outcome.lines[-1].endswith("bookferry backup old")
    config = tmp_path / "bookferry.toml"
    before = config.read_text() + "# a comment of a person, without an end of line"
    config.write_text(before)
    config.chmod(0o640)
    outcome = run("init", "--tenant", "new", "--api", "v3", "--base-url", "https://new.example.com", folder=tmp_path)
    assert (outcome.status, outcome.err) == (0, "")
    assert [line.split("bookferry ")[-1] for line in outcome.lines] == [
        "Added 'new' to bookferry.toml. Next:",
        "login new",
        "doctor new",
        "backup new",
    ]
    assert config.read_text().startswith(f"{before}\n\n[tenants.new]\n")
    assert config.stat().st_mode & 0o777 == 0o640
    settings = load_settings(config)
    assert [(name, tenant.base_url, tenant.api, tenant.username_env) for name, tenant in settings.tenants.items()] == [
        ("old", "https://library.example.com", "v2", "OLD_USER"),
        ("new", "https://new.example.com", "v3", None),
    ]
    assert list(tmp_path.iterdir()) == [config]


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        ([], ["already exists", "`bookferry init --tenant NAME --base-url ADDRESS`", "left as it is"]),
        (["--tenant", "old"], ["already has a library 'old'", "left as it is"]),
        (["--tenant", "new", "--data", "elsewhere"], ["already says where the data is", "--data", "left as it is"]),
        (
            ["--tenant", "new", "--base-url", "gopher://x"],
            ["bookferry.toml: tenants.new.base_url", "would not be valid", "left as it is"],
        ),
        (["--tenant", "new", "--api", "v4"], ["'--api'", "'v2', 'v3'"]),
        (["--tenant", "a]\nb"], ["--tenant 'a]\\nb'", "lower case"]),
        (["--config", "other.toml", "--base-url", "http://library.example.com"], ["use https"]),
        (["--config", "other.toml", "--base-url", "library.example.com/api/v2"], ["base_url"]),
        (["--config", "no/such/folder/bookferry.toml"], ["cannot be written"]),
    ],
)
def test_init_leaves_what_is_there_and_writes_nothing_that_does_not_load(
    arguments: list[str], messages: list[str], tmp_path: Path
) -> None:
    run("init", "--tenant", "old", folder=tmp_path)
    config = tmp_path / "bookferry.toml"
    before = config.read_bytes()
    run("init", *arguments, "--json", folder=tmp_path).assert_failed(2, *messages)
    assert (config.read_bytes(), list(tmp_path.iterdir())) == (before, [config])
