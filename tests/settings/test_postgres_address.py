"""Any address of a database that RFC 3986 allows, and no part of its secrets in a message (I10)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from pipelines.errors import BookferryError, ConfigurationError
from pipelines.service.redaction import redact
from pipelines.service.sign_in.token_store import TokenStore
from pipelines.settings.postgres_address import PostgresAddress
from pipelines.settings.settings import Settings
from pipelines.settings.storage import IcebergSettings
from pipelines.state.postgres import PostgresState
from pipelines.state.server import Server
from pipelines.store.iceberg.catalogue import catalogue_errors, catalogue_settings
from pipelines.store.postgres.loading import Database
from tests.postgres import VARIABLE, database, postgres_server
from tests.variables import with_variables

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)


@given(user=TEXTS, password=TEXTS, name=TEXTS)
def test_every_text_arrives_as_it_is(user: str, password: str, name: str) -> None:
    """Percent-encoded, as RFC 3986 has it."""
    encoded = [quote(text, safe="") for text in (user, password, name)]
    parsed = PostgresAddress.parse("postgresql://{}:{}@db.example.org:5433/{}".format(*encoded))
    assert parsed.parameters == {
        "user": user,
        "password": password,
        "host": "db.example.org",
        "port": "5433",
        "dbname": name,
    }
    assert parsed.place == f"postgresql://db.example.org:5433/{encoded[2]}"


def test_a_sign_in_among_the_parameters() -> None:
    """Encoded as in all other parts."""
    parsed = PostgresAddress.parse("postgresql://db.example.org/d?user=me%40server&password=p%40ss")
    assert parsed.parameters == {"host": "db.example.org", "dbname": "d", "user": "me@server", "password": "p@ss"}


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("postgresql://u:p@[2001:db8::1]:5432/d", "postgresql://[2001:db8::1]:5432/d"),
        ("postgres://a,b:6432/d?target_session_attrs=any", "postgresql://a,b:6432/d"),
        ("postgresql+psycopg://u@/d?host=/var/run", "postgresql:///d"),
        ("postgresql://%2Fvar%2Frun/d", "postgresql://%2Fvar%2Frun/d"),
        ("postgresql://host", "postgresql://host"),
        ("PostgreSQL://u:p@host/d", "postgresql://host/d"),
    ],
)
def test_what_people_see_of_an_address(address: str, place: str) -> None:
    """Hosts, ports and database."""
    assert PostgresAddress.parse(address).place == place


@pytest.mark.parametrize(
    "address",
    [
        *("postgresql://u:my/pass word@host/d", "postgresql://u:my?pass@host", "x", ""),
        *("postgresql://u:12/my@host/d", "postgresql://u:x@y/my@host/d", "postgresql://u:1?host=my@host/d"),
        *(
            "postgresql://u:p@host/d?my=x",
            "postgresql://u:p@my@host/d",
            "postgresql://host/d?user=me@my",
            "postgresql://u:my%00@host/d",
        ),
    ],
)
def test_what_is_no_address_is_refused_without_a_part_of_it(address: str) -> None:
    """The password may be in any part of a text that cannot be read."""
    with pytest.raises(ConfigurationError) as refused:
        PostgresAddress.parse(address)
    assert "pass " not in str(refused.value).replace("password", "")
    assert "my" not in str(refused.value)
    assert redact(str(refused.value)) == str(refused.value), "the advice itself is not masked"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server of this test, which changes its rules of access."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(VARIABLE, raising=False)
        with postgres_server() as address:
            yield address


def load(address: str) -> None:
    """As `bookferry doctor` tries it."""
    Database(address).check()


def sign_in(address: str) -> None:
    """Read a sign-in."""
    TokenStore(PostgresState(address), "old", "https://library.example.org").read()


def catalogue(address: str) -> None:
    """Open the catalogue of Iceberg tables."""
    chosen = Settings(
        Path("bookferry.toml"), Path("data"), "UTC", "02:00", {}, iceberg=IcebergSettings(uri_env="ADDRESS")
    )
    with catalogue_errors(
        "Opening", iceberg := with_variables({"ADDRESS": address}, catalogue_settings, chosen), "again"
    ):
        create_engine(iceberg.properties["uri"], poolclass=NullPool).connect().close()


def state(address: str) -> None:
    """Open the shared state."""
    connection = Server(address).connect()
    connection.close()


@pytest.mark.parametrize("password", ["two words", "a+b c", "p@ss/w:rd%20?#&=", "größe ñ", "'\\ \"x"])
def test_every_connection_takes_the_address_and_none_shows_its_secret(server: str, password: str) -> None:
    """The load's two drivers, the sign-ins and the state; with a wrong password the messages have no part of it."""
    user = f"the user {secrets.token_hex(3)}"
    with database(server) as address, psycopg.connect(address, autocommit=True) as administrator:
        role = '"' + user + '"'
        literal = administrator.execute("SELECT quote_literal(%s)", (password,)).fetchall()[0][0]
        administrator.execute(f"CREATE ROLE {role} SUPERUSER LOGIN PASSWORD {literal}".encode())
        [(rules,)] = administrator.execute("SHOW hba_file").fetchall()
        path = Path(rules)
        before = path.read_text(encoding="utf-8")
        path.write_text(f"local all {role} scram-sha-256\n{before}", encoding="utf-8")
        administrator.execute("SELECT pg_reload_conf()")
        place = address.partition("@")[2]
        try:
            for text, works in ((password, True), (f"{password} and more", False)):
                given_address = f"postgresql://{quote(user)}:{quote(text, safe='')}@{place}"
                for attempt in (load, sign_in, state, catalogue):
                    if works:
                        attempt(given_address)
                        continue
                    with pytest.raises(BookferryError) as refused:
                        attempt(given_address)
                    message = str(refused.value)
                    assert "authentication failed" in message
                    assert not [part for part in (text, quote(text), "and more", "and%20more") if part in message]
        finally:
            path.write_text(before, encoding="utf-8")
            administrator.execute("SELECT pg_reload_conf()")
            administrator.execute(f"DROP OWNED BY {role}".encode())
            administrator.execute(f"DROP ROLE {role}".encode())


PRINTABLE = st.text(st.characters(codec="utf-8", categories=["L", "M", "N", "P", "S", "Zs"]), min_size=8)


@given(password=PRINTABLE)
@settings(max_examples=50)
def test_a_message_is_that_of_any_other_password(password: str) -> None:
    """Encoded or not, and whatever of it looks like a host, a database or a parameter: a message has no part of it."""
    for attempt in (load, sign_in, state, catalogue):
        usual = {message(attempt, text) for text in ("x", "/")}  # no server there; no address
        assume(not any(password in text for text in usual))
        assert message(attempt, password) in usual
        assert message(attempt, quote(password, safe="")) == message(attempt, "x")


def message(attempt: Callable[[str], None], password: str) -> str:
    """What is said of an address of which nothing listens."""
    with pytest.raises(BookferryError) as failed:
        attempt(f"postgresql://me:{password}@127.0.0.1:1/nothing")
    return str(failed.value)
