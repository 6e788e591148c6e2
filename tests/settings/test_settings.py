"""A mistake in the configuration is one clear error that names file, key and remedy, and never shows a secret."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from sqlalchemy import make_url

from pipelines.errors import ConfigurationError, ExitStatus
from pipelines.service.redaction import redact
from pipelines.settings.config_file import load_settings
from pipelines.settings.credentials import BasicCredentials, SessionCookie
from pipelines.settings.password_command import first_line
from pipelines.settings.settings import Settings
from pipelines.settings.tenant import TenantSettings
from pipelines.store.iceberg.catalogue import catalogue_settings
from tests.variables import with_variables

TENANT = {"base_url": "https://library.example.org", "api": "v2"}
SECRET = "hunter2-hunter2"

Load = Callable[..., Settings]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads settings with one tenant `old`, with some keys changed or (None) left out; `head` comes before it."""

    def make(head: str = "", **keys: Any) -> Settings:
        lines = [head, "[tenants.old]"]
        for key, value in {**TENANT, **keys}.items():
            if value is not None:
                lines.append(f"{key} = {value if isinstance(value, int | float) else repr(value)}")
        path = tmp_path / "bookferry.toml"
        path.write_text("\n".join(lines), encoding="utf-8")
        return load_settings(path)

    return make


def mistake(load: Load, head: str = "", **keys: Any) -> str:
    """Returns the message of the error for these keys."""
    with pytest.raises(ConfigurationError) as caught:
        load(head, **keys)
    assert caught.value.exit_status is ExitStatus.USAGE
    assert "bookferry.toml: " in str(caught.value)
    assert SECRET not in f"{caught.value!r}"
    assert not re.search("Value error|Input should|pydantic", str(caught.value))
    return str(caught.value)


def test_a_full_configuration_loads(load: Load, tmp_path: Path) -> None:
    """The defaults, and a folder that is relative to the file, wherever the command is run."""
    settings = load(username_env="OLD_USER", password_env="OLD_PASSWORD")
    old = settings.tenant("old")
    assert (settings.path, settings.data) == (tmp_path / "bookferry.toml", tmp_path / "library-data")
    assert (settings.timezone, settings.nightly_at) == ("UTC", "02:00")
    assert (old.base_url, old.api, old.requests_per_minute) == (TENANT["base_url"], "v2", 60)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("https://library.example.org", "https://library.example.org"),
        ("HTTPS://Library.Example.ORG:443//", "https://library.example.org"),
        ("https://library.example.org:8443/Main/", "https://library.example.org:8443/Main"),
        ("https://library.example.org/api-gateway", "https://library.example.org/api-gateway"),
        ("https://[2001:DB8::1]:443/x", "https://[2001:db8::1]/x"),
        ("http://127.0.0.1:8000/library", "http://127.0.0.1:8000/library"),
        ("http://localhost:80", "http://localhost"),
    ],
)
def test_one_library_has_one_spelling(load: Load, written: str, meant: str) -> None:
    """I1, I2: budget and origin are stored under the address; http only for this machine itself."""
    assert load(base_url=written).tenant("old").base_url == meant


@pytest.mark.parametrize(
    ("address", "remedy"),
    [
        ("http://library.example.org", "use https"),
        ("http://[::ffff:10.0.0.1]", "use https"),
        ("http://localhost.example.org", "use https"),
        ("http://127.1", "use https"),
        ("library.example.org", "must be an address such as https://"),
        ("https://library.example.org:port", "must be an address such as https://"),
        ("https://[::1", "must be an address such as https://"),
        (
            f"https://me:{SECRET}@library.example.org",
            "username_env and password_env name the variables",
        ),
        (f"https://me:{SECRET}/x@library.example.org", "must be an address such as https://"),
        (f"https://me:{SECRET}\\u2100@library.example.org", "must be an address such as https://"),
        ("https://library.example.org/main/api/v2/", "must stop before /api"),
        ("https://library.example.org/#top", "must not contain a query or a fragment"),
        ("https://library.example.org/a/../b", "must not contain"),
        ("https://library.example.org/%2E%2e/b", "must not contain"),
        ("https://library.example.org/a//b", "must not contain"),
        ("http://[::1%25lo]/", "must not contain"),
        ("https://library.example .org", "must not contain blanks"),
        ("https:\\\\library.example.org", "must not contain blanks, control characters or backslashes"),
    ],
)
def test_an_address_that_cannot_be_meant_is_refused(load: Load, address: str, remedy: str) -> None:
    """Http to another host is a clear error that names file, key and remedy; I10: no message has a password."""
    message = mistake(load, base_url=address.encode().decode("unicode_escape") if "\\u" in address else address)
    assert "tenants.old.base_url: " in message
    assert remedy in message


@given(
    st.text(max_size=60)
    | st.text(st.sampled_from("htps:/[]@.127%?#ab\\ "), max_size=30).map(lambda text: f"http://{text}")
)
def test_any_address_is_understood_or_refused(address: str) -> None:
    """One clear error, never an exception of a library; an accepted address is accepted again as it stands."""
    try:
        accepted = TenantSettings(base_url=address, api="v2").base_url
    except ValidationError as error:
        assert re.match("Value error, (must|would) ", error.errors()[0]["msg"])  # noqa: PT017  either outcome is right
        return
    assert TenantSettings(base_url=accepted, api="v2").base_url == accepted
    assert accepted.startswith(("https://", "http://127.", "http://[::1]", "http://localhost"))


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            {"password": SECRET},
            "unknown key tenants.old.password (did you mean 'password_env'?). Known keys here: api, base_url",
        ),
        ({"base_url": None}, "tenants.old.base_url: is missing. Add it."),
        ({"api": "v1"}, "tenants.old.api: 'v1' input should be 'v2' or 'v3'"),
        ({"requests_per_minute": 0}, "tenants.old.requests_per_minute: 0 input should be greater than or equal to 1"),
        ({"requests_per_minute": 1.5}, "tenants.old.requests_per_minute: 1.5 input should be a valid integer"),
        (
            {"password_env": "correct horse battery"},
            "must be the name of an environment variable, such as PASSWORD_ENV. Never write the secret",
        ),
        ({"password_env": 12345}, "must be the name of an environment variable"),
        ({"session_cookie_env": "C", "username_env": "U"}, "tenants.old: has two sign-ins: keep either"),
    ],
)
def test_a_mistake_in_a_tenant(load: Load, keys: dict[str, Any], expected: str) -> None:
    """An unknown key is a clear error that names file, key and remedy."""
    message = mistake(load, **keys)
    assert expected in message
    assert not any(secret in message for secret in ("correct horse", "12345"))
    assert redact(message) == message, "a word of the message looks like a secret: nobody could read it"


def test_types_of_identifiers(load: Load) -> None:
    """Each type is a table; a table that replaces a standard type may use its field."""
    text = '[identifiers.pmcid]\npattern = "PMC[0-9]+"\nfields = ["pmc"]\n[identifiers.pmid]\npattern = "[0-9]+"\n'
    assert {name: table["fields"] for name, table in load(text).identifiers.items()} == {"pmcid": ("pmc",), "pmid": ()}


def test_machines_that_share_the_data_need_one_catalogue(load: Load) -> None:
    """A file on each of them would know nothing of what the others register and remove."""
    shared = 'state = "postgres"\npostgres_env = "DB"\ndata = "s3://bb/x"\n[iceberg]\n'
    with pytest.raises(ConfigurationError, match=r'several machines work on this data.* uri_env = "DB"'):
        load(shared)
    assert load(f'{shared}uri_env = "DB"').iceberg
    assert load('data = "s3://bb/x"\n[iceberg]').iceberg
    assert load(f'{shared}type = "glue"').iceberg


def test_what_no_folder_of_data_may_have_in_its_name(load: Load) -> None:
    """DuckDB's patterns, addresses of SQLite, and those of Iceberg tables, which would be files of another folder."""
    assert "Name another folder as `data`" in mistake(load, 'data = "a?b"')
    assert "Name another folder as `work`" in mistake(load, 'data = "s3://bb/x"\nwork = "a?b"')
    assert load('data = "a#b"').iceberg is None
    assert "Iceberg tables cannot have # in them" in mistake(load, 'data = "a#b"\n[iceberg]')


def test_the_catalogue_of_iceberg_tables(load: Load, tmp_path: Path) -> None:
    """An empty table is enough: a SQLite file. Another catalogue has its address and secrets in variables."""
    assert load().iceberg is None
    plain = with_variables({}, catalogue_settings, load("[iceberg]"))
    data = tmp_path / "library-data"
    assert (plain.properties["uri"], plain.properties["warehouse"]) == (
        f"sqlite:///{data}/iceberg.db",
        f"file://{data}/iceberg",
    )
    environ = {"A": f"postgresql://me:{SECRET}@h:1/db", "AWS_ENDPOINT_URL": "https://h", "AWS_REGION": "r", "T": SECRET}
    bucket = with_variables(environ, catalogue_settings, load('data = "s3://bb/x"\n[iceberg]\nuri_env = "A"'))
    uri = make_url(bucket.properties["uri"])
    place = {"user": "me", "password": SECRET, "host": "h", "port": "1", "dbname": "db"}
    assert uri.drivername == "postgresql+psycopg"
    assert uri.query.items() >= (place | {"application_name": "bookferry", "connect_timeout": "10"}).items()
    assert {key: value for key, value in bucket.properties.items() if key != "uri"} == {
        "warehouse": "s3://bb/x/iceberg",
        "s3.endpoint": "https://h",
        "s3.region": "r",
        "s3.retry-strategy-impl": "pipelines.store.iceberg.retries.PatientRetries",
    }
    assert (bucket.place, bucket.secrets) == ("postgresql://h:1/db", [SECRET])
    rest = '[iceberg]\ntype = "rest"\nuri_env = "U"\n[iceberg.properties]\nprefix = "p"\n[iceberg.properties_env]\ntoken = "T"'
    rest_catalogue = with_variables({**environ, "U": "https://c/x"}, catalogue_settings, load(rest))
    assert (rest_catalogue.kind, rest_catalogue.properties.get("warehouse"), rest_catalogue.place) == (
        "rest",
        None,
        "https://c/x",
    )
    assert rest_catalogue.properties.items() >= {"uri": "https://c/x", "prefix": "p", "token": SECRET}.items()
    with pytest.raises(
        ConfigurationError, match=r"iceberg\.properties_env\.token names the environment variable T, which"
    ):
        with_variables({"U": "https://c/x"}, catalogue_settings, load(rest))
    for wrong in (f"me:{SECRET}", f"postgresql://me:{SECRET}x@h:{SECRET}/db"):
        with pytest.raises(ConfigurationError, match="not an address such as postgresql://") as caught:
            with_variables({"A": wrong}, catalogue_settings, load('[iceberg]\nuri_env = "A"'))
        assert SECRET not in str(caught.value)
    with pytest.raises(ConfigurationError, match=r"PyIceberg has no az://"):
        with_variables({}, catalogue_settings, load('data = "az://abc/x"\n[iceberg]'))


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (
            'dta = "x"',
            "personal_key_env, postgres, postgres_env, retention, state, tenants, timezone, tokens, work.",
        ),
        ('[postgres]\nadress_env = "x"', "Known keys here: load, schema."),
        ('[iceberg]\ncatalog = "x"', "Known keys here: namespace, properties, properties_env, type, uri_env"),
        ('[iceberg]\ntype = "delta"', "iceberg.type: 'delta' input should be 'sql', 'rest', "),
        (
            f'[iceberg]\nuri_env = "postgresql://me:{SECRET}@h/db"',
            "iceberg.uri_env: must be the name of an environment",
        ),
        (f'[iceberg.properties]\ntoken = "{SECRET}"', "has token, which may be a secret: name the variable"),
        (f'[iceberg.properties_env]\ntoken = "{SECRET}"', "iceberg.properties_env.token: must be the name of an"),
        ("data = 5", "data: 5 input should be a valid string"),
        (
            'data = "ftp://bucket/prefix"',
            "data: names a place of an unknown kind (ftp://): use a folder, or s3://, gs://",
        ),
        ('data = "s3://"', "data: names no bucket: write s3://BUCKET or s3://BUCKET/PREFIX"),
        (
            'data = "s3://key:secret@bucket"',
            "data: must not have a user name or a password in it; the environment holds the credentials of",
        ),
        ('data = "s3://bucket/a*b"', "data: has a prefix with other characters than letters, digits"),
        ('work = "x"', "work: is for data in a bucket"),
        ('data = "a\\u0000b"', "is not a folder"),
        ('data = "~nosuchuser/x"', "is not a folder"),
        ('timezone = "Mars/Olympus"', "timezone: 'Mars/Olympus' is not a time zone; use a name such as Europe/Vienna"),
        ('nightly_at = "25:00"', "nightly_at: '25:00' is not a time of day such as 02:00."),
        ('tokens = "~nosuchuser/x"', "tokens: '~nosuchuser/x' is not a folder"),
        (f'postgres_env = "postgres://me:{SECRET}@h/db"', "postgres_env: must be the name of an environment variable"),
        (f'[data]\npassword = "{SECRET}"', "data: input should be a valid string"),
        *(
            (f"[identifiers.{name}]\n{table}", f"identifiers{expected}")
            for name, table, expected in (
                ("PMC", 'pattern = "x"', ".PMC: the name of a type is lower case letters, digits and _"),
                ("pmcid", "", ".pmcid.pattern: is missing. Add it."),
                ("pmcid", 'pattern = "["', ".pmcid.pattern: '[' is no regular expression"),
                ("pmcid", 'pattern = "(a)"', ".pmcid.pattern: '(a)' has a group that captures"),
                ("pmcid", 'pattern = "a*"', ".pmcid.pattern: 'a*' matches empty text"),
                (
                    "pmcid",
                    'pattern = "a"\nchekc = 1',
                    ".pmcid.chekc. Known keys here: case, fields, identifies, pattern.",
                ),
                ("pmcid", 'pattern = "a"\ncase = "title"', ".pmcid.case: 'title' input should be 'upper'"),
                ("pmcid", 'pattern = "a"\nfields = ["title"]', ".pmcid.fields.0: 'title' has another meaning"),
                ("pmcid", 'pattern = "a"\nfields = ["thumb_url"]', ".pmcid.fields.0: 'thumb_url' has another meaning"),
                ("title", 'pattern = "a"', ": has another meaning in every publication"),
                ("pmcid", 'pattern = "a"\nfields = ["doi"]', ": gives the field doi to two types, doi and pmcid"),
            )
        ),
        ('[tenants."../x"]\nbase_url = "https://h"\napi = "v2"', "tenants.../x: a tenant's name is lower case letters"),
    ],
)
def test_a_mistake_in_the_file(load: Load, head: str, expected: str) -> None:
    """I13: a tenant's name becomes a folder."""
    assert expected in mistake(load, head)


def test_every_mistake_is_reported_at_once(load: Load) -> None:
    """One run of a command reports every mistake."""
    lines = mistake(load, 'dta = "x"', api="v1", base_url="http://h").splitlines()
    assert len(lines) == 3
    assert all("bookferry.toml: " in line for line in lines)


@pytest.mark.parametrize("data", ["s3://bucket/some/prefix", "s3://bucket/some//prefix/", "s3a://bucket/some/prefix"])
def test_data_in_a_bucket(tmp_path: Path, data: str) -> None:
    """One spelling for each bucket; the working files are on this machine, in a folder for each bucket."""
    (tmp_path / "bookferry.toml").write_text(f'data = "{data}"\n')
    settings = with_variables({"XDG_STATE_HOME": "/var/state"}, load_settings, tmp_path / "bookferry.toml")
    assert settings.bucket == "s3://bucket/some/prefix"
    assert settings.data.parent == Path("/var/state/bookferry")
    assert re.fullmatch("bucket-some-prefix-[0-9a-f]{8}", settings.data.name)


@pytest.mark.parametrize("content", [b'data = "\xe9"', None])
def test_an_unreadable_file_is_reported(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "bookferry.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"bookferry\.toml: cannot be read"):
        load_settings(path)


# ---- sign-in ----------------------------------------------------------------------------------------------------------------------------

BASIC = {"username_env": "OLD_USER", "password_env": "OLD_PASSWORD"}


def test_credentials_come_from_the_environment_when_they_are_needed(load: Load) -> None:
    """Secrets are named by environment variable, never written; and no repr, which may end up in a log, shows them (I10)."""
    settings = load(**BASIC)
    basic = with_variables({"OLD_USER": "me", "OLD_PASSWORD": f"{SECRET} with: é"}, settings.credentials, "old")
    assert basic == BasicCredentials("me", f"{SECRET} with: é")
    cookie = with_variables({"OLD_COOKIE": "ab12=="}, load(session_cookie_env="OLD_COOKIE").credentials, "old")
    assert cookie == SessionCookie("ab12==")
    assert not [secret for secret in (SECRET, "ab12") if secret in repr((settings, basic, cookie))]


@pytest.mark.parametrize(
    ("keys", "environment", "expected"),
    [
        ({}, {}, "tenants.old has no sign-in for v2. Name the variables that hold it: username_env and password_env"),
        (
            BASIC,
            {"OLD_PASSWORD": SECRET},
            "tenants.old.username_env names the environment variable OLD_USER, which is not set",
        ),
        (BASIC, {"OLD_USER": "me"}, "OLD_PASSWORD, which is not set. Set it, for example: export OLD_PASSWORD=..."),
        (BASIC, {"OLD_USER": "me", "OLD_PASSWORD": ""}, "OLD_PASSWORD, which is empty"),
        (
            BASIC,
            {"OLD_USER": "me:too", "OLD_PASSWORD": SECRET},
            "tenants.old.username_env: the environment variable that it names contains a colon",
        ),
        (
            BASIC,
            {"OLD_USER": "me", "OLD_PASSWORD": f"{SECRET}\n"},
            "tenants.old.password_env: the environment variable that it names contains a line break",
        ),
        ({"session_cookie_env": "C"}, {"C": f"a={SECRET}; b=c"}, "contains a blank, quote, comma, semicolon"),
        (
            {"session_cookie_env": "C"},
            {},
            "tenants.old.session_cookie_env names the environment variable C, which is not set",
        ),
    ],
)
def test_an_unusable_sign_in_is_reported(
    load: Load, keys: dict[str, str], environment: dict[str, str], expected: str
) -> None:
    """A missing variable; RFC 7617 and RFC 6265 for values that cannot be sent; no message has the value."""
    with pytest.raises(ConfigurationError) as caught:
        with_variables(environment, load(**keys).credentials, "old")
    assert expected in str(caught.value)
    assert SECRET not in f"{caught.value!r}"


def test_a_password_written_where_its_variable_belongs_is_not_shown(load: Load) -> None:
    """I10: the commonest mistake with such a file; the password looks like a name and no such variable is set."""
    settings = load(username_env="OLD_USER", password_env="hunter2")
    with pytest.raises(ConfigurationError, match=r"never the secret.*Name it in capitals") as caught:
        with_variables({"OLD_USER": "me"}, settings.credentials, "old")
    assert "hunter2" not in str(caught.value)


def test_entries_with_one_base_url_share_the_lower_budget(load: Load) -> None:
    """I1: one budget for a library, over both API versions."""
    new_tenant = '[tenants.new]\nbase_url = "https://LIBRARY.example.org:443/"\napi = "v3"\nrequests_per_minute = 30\n'
    settings = load(new_tenant, requests_per_minute=60)
    assert settings.budget_of("old") == settings.budget_of("new") == ("https://library.example.org", 30)


# ---- a password by command --------------------------------------------------------------------------------------------------------------


def test_a_command_prints_the_password(load: Load, tmp_path: Path) -> None:
    """Its first line, once in a process; without a shell, in the folder of the file; nothing of it is in a repr (I10)."""
    program = f"import pathlib; open('runs', 'a').write('x'); print({SECRET!r} + ' $HOME é\\r\\nlogin: me')"
    command = [sys.executable, "-X", "utf8", "-c", program]
    settings = load(username_env="U", password_command=command)
    credentials = [with_variables({"U": "me"}, settings.credentials, "old") for _ in range(3)]
    assert credentials == [BasicCredentials("me", f"{SECRET} $HOME é")] * 3
    assert (tmp_path / "runs").read_text() == "x"
    assert SECRET not in repr(credentials)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("import sys; print({0!r}); print({0!r}, file=sys.stderr); sys.exit(3)", "ended with exit status 3"),
        ("import os; print({0!r}, flush=True); os.kill(os.getpid(), 9)", "ended with signal 9"),
        ("print(); print({0!r})", "prints is empty"),
        ("pass", "prints is empty"),
        ("print({0!r} + chr(7))", "prints contains a line break or another control character"),
        ("import sys; sys.stdout.buffer.write(bytes([255]) + {0!r}.encode())", "is not UTF-8"),
    ],
)
def test_a_command_that_fails_is_named_by_its_program_alone(load: Load, program: str, expected: str) -> None:
    """I10: neither what it prints nor its arguments are in a message or in what Python chains to it."""
    settings = load(username_env="U", password_command=[sys.executable, "-c", program.format(SECRET)])
    with pytest.raises(ConfigurationError) as caught:
        with_variables({"U": "me"}, settings.credentials, "old")
    assert expected in str(caught.value)
    assert "tenants.old.password_command: " in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_command_that_cannot_be_started_or_does_not_end(load: Load, tmp_path: Path) -> None:
    settings = load(username_env="U", password_command=["no-such-program", SECRET])
    with pytest.raises(ConfigurationError, match="no-such-program cannot be started: No such file") as caught:
        with_variables({"U": "me"}, settings.credentials, "old")
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(ConfigurationError, match=r"did not end within 0\.1 seconds"):
        first_line((sys.executable, "-c", "import time; time.sleep(60)"), tmp_path, "here", seconds=0.1)


def test_one_password_and_a_list_of_words(load: Load) -> None:
    assert "has two passwords: keep either password_env or password_command" in mistake(
        load, **BASIC, password_command=["pass"]
    )
    assert "has two sign-ins" in mistake(load, session_cookie_env="C", password_command=["pass"])
    for wrong in (SECRET, [], [SECRET, 7], [""]):
        assert 'must be a list of words, such as ["pass", "show", "library"]' in mistake(
            load, username_env="U", password_command=wrong
        )
    with pytest.raises(ConfigurationError, match=r"tenants\.old has no sign-in for v2"):
        with_variables({}, load(password_command=["pass"]).credentials, "old")
