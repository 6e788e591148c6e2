"""I10: no password, token, secret, cookie or signed address in a message."""

from __future__ import annotations

import base64
import time
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.service.redaction import MASK, MIN_LENGTH, keep_secret, outside_text, redact


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GET https://me:pass@h.example/api", f"GET https://{MASK}@h.example/api"),
        ("https://me:p@ss@h.example/", f"https://{MASK}@h.example/"),
        ("Authorization: Basic bWU6cGFzcw==", f"Authorization: {MASK}"),
        ("{'authorization': 'Basic x', 'accept': 'y'}", f"{{'authorization': '{MASK}', 'accept': 'y'}}"),
        ("[(b'Authorization', b'Bearer x')]", f"[(b'Authorization', b'{MASK}')]"),
        ("proxy-authorization: Basic bWU6cGFzcw==", f"proxy-authorization: {MASK}"),
        ("sent Bearer eyJhbGciOi.J9", f"sent Bearer {MASK}"),
        ("sent bearer abcdefghijklmnopqrst", f"sent bearer {MASK}"),
        ("Set-Cookie: _library_session=ab12; path=/", f"Set-Cookie: {MASK}"),
        ("'cookie': 'a=b; c=d'", f"'cookie': '{MASK}'"),
        ("got _library_session=ab12; path=/", f"got _library_session={MASK}; path=/"),
        ("http://h/f?expires=9&signature=ab&x=1", f"http://h/f?expires={MASK}&signature={MASK}&x=1"),
        ("http://h/f?X-Amz-Signature=ab", f"http://h/f?X-Amz-Signature={MASK}"),
        ('{"access_token": "a b", "n": 1}', f'{{"access_token": {MASK}, "n": 1}}'),
        ("grant_type=x&refresh_token=ab&client_secret=cd", f"grant_type=x&refresh_token={MASK}&client_secret={MASK}"),
        ('"password":"with \\" quote"', f'"password":{MASK}'),
    ],
)
def test_text_that_looks_like_a_secret_is_masked(text: str, expected: str) -> None:
    """I10: recognised by its form in any text: a service that repeats a request, a library that prints headers."""
    assert redact(text) == expected


@pytest.mark.parametrize("letter", ["i", "s", "k"])
def test_a_letter_that_counts_as_an_ascii_one_hides_nothing(letter: str) -> None:
    """Patterns that ignore case take ı, ſ and the Kelvin sign for letters, and so does the look that comes before them."""
    words = {"i": "authorızatİon: x1y2", "s": "paſſword: x1y2", "k": "Cooᴋie: x1y2".replace("ᴋ", "\u212a")}
    assert redact(words[letter]).endswith(f": {MASK}")


@pytest.mark.parametrize(
    "text",
    [
        "HTTP Basic authentication with the normal account credentials",
        'WWW-Authenticate: Basic realm="library"',
        "Check user name and password (or the session cookie) where bookferry.toml takes them from.",
        "https://library.example/api/v2/publications?author=someone@example.org&page=3",
        "tenants.old.password_env names the environment variable OLD_PASSWORD, which is not set.",
    ],
)
def test_ordinary_sentences_stay(text: str) -> None:
    """A message still says what was tried, what came back, what to do."""
    assert redact(text) == text


secrets = st.text(min_size=MIN_LENGTH, max_size=40).filter(lambda text: MASK not in text and text not in MASK)
around = st.text(max_size=30)


@pytest.mark.long
@given(secret=secrets, before=around, after=around)
@example(secret="redacted]", before="[", after="")
@example(secret="Basic abcdef0", before="Basic ", after="")
def test_a_known_secret_is_found_wherever_it_stands(secret: str, before: str, after: str) -> None:
    """I10: only the mask itself may contain a part of the secret."""
    redacted = redact(f"{before}{secret}{after}", secret)
    assert all(secret not in part for part in redacted.split(MASK))


pieces = st.sampled_from(
    [MASK, "://", "@", "basic ", "Bearer ", "token=", "?", "&", "password", "=", ":", '"', "'", " ", "\n", "cookie"]
)
texts = st.lists(pieces | around, max_size=12).map("".join)


@pytest.mark.long
@given(text=texts, secret=secrets | st.text(max_size=3))
@example(text="://a b@", secret=" ")
@example(text="password=[redacted]", secret="")
def test_redacting_again_changes_nothing(text: str, secret: str) -> None:
    """I10: texts pass several modules, and each may redact."""
    redacted = redact(text, secret)
    assert redact(redacted, secret) == redacted


@pytest.mark.parametrize("secret", ["correct horse/é\"!'", "p%ss\\wörd", "\udce9-from-latin-1"])
def test_a_kept_secret_is_found_in_all_its_forms(secret: str) -> None:
    """I10: a service may repeat it in an address, in JSON or in Base64, and Python may show it in a repr."""
    keep_secret(secret, f"me:{secret}", "")
    raw = secret.encode(errors="surrogateescape")
    forms = [secret, quote(raw, safe=""), f"{secret!r}"[1:-1], base64.b64encode(b"me:" + raw).decode()]
    assert [redact(f"a {form} b") for form in forms] == [f"a {MASK} b"] * len(forms)


def test_a_short_secret_is_masked_as_a_word_only() -> None:
    """A password that is a syllable must not make every message unreadable."""
    keep_secret("art")
    assert redact("the word art starts an article") == f"the word {MASK} starts an article"


@pytest.mark.long
@given(text=st.text(max_size=500), max_length=st.integers(1, 50))
@example(text="a\x1b[31mred\r\nb\u202e", max_length=50)
def test_text_from_outside_is_one_short_printable_line(text: str, max_length: int) -> None:
    """I13: no text of a service moves the cursor, forges a line or fills the screen."""
    redacted = outside_text(text, max_length)
    assert redacted.isprintable()
    assert len(redacted) <= 10 * max_length + 1  # a character may become an escape such as \U000e0001


@pytest.mark.parametrize("piece", ["\n", "://", 'password="', "basic ", "cookie'", "\\", "a@", "authorization:"])
def test_a_hostile_text_takes_no_time(piece: str) -> None:
    """I13: no pattern needs seconds for a text of a service."""
    started = time.process_time()
    outside_text(piece * 1_000_000)
    assert time.process_time() - started < 0.5
