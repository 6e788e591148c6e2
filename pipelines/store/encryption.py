"""The key under which personal data is kept, where the settings name one: what it seals, nobody reads or changes without it.

Parquet files are encrypted with the key itself, so that every engine that knows Parquet's encryption reads them; all else that is written
on the way is sealed here, with a key derived from it. Nothing but the environment holds the key.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from pipelines.errors import ConfigurationError, StorageError
from pipelines.settings.settings import Settings

KEY_BYTES = 32
"""AES-256."""

_SEAL = b"BFS1"
"""What sealed bytes begin with: the form that follows is a nonce and AES-GCM's answer."""
_NONCE_BYTES = 12

MAKE_ONE = "A first key is made with `openssl rand -base64 32`; keep a copy in a safe place, without it nobody reads what it encrypted"


class PersonalKey:
    """One key. `fingerprint` names it in manifests and says nothing of it."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise ValueError("not 32 bytes")
        self.secret = secret
        self.fingerprint = self._derived(b"bookferry: name of a key", 8).hex()
        self._sealing = AESGCM(self._derived(b"bookferry: sealed bytes", KEY_BYTES))

    @classmethod
    def parse(cls, text: str) -> Self:
        """From base64, as `openssl rand -base64 32` prints it; a `ValueError` where it is none, which does not show it."""
        try:
            return cls(base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError):
            raise ValueError("not 32 bytes in base64") from None

    @property
    def text(self) -> str:
        """In base64."""
        return base64.b64encode(self.secret).decode()

    def seal(self, content: bytes) -> bytes:
        """`content`, unreadable without the key; it grows by 32 bytes and is never the same twice."""
        nonce = os.urandom(_NONCE_BYTES)
        return _SEAL + nonce + self._sealing.encrypt(nonce, content, _SEAL)

    def unseal(self, sealed: bytes) -> bytes:
        """What was sealed. A `StorageError` where it was sealed under another key, or changed, or cut."""
        form, nonce, content = sealed[:4], sealed[4 : 4 + _NONCE_BYTES], sealed[4 + _NONCE_BYTES :]
        try:
            return self._sealing.decrypt(nonce, content, form)
        except (InvalidTag, ValueError):
            raise StorageError(
                f"Personal data in the work folder cannot be read with the key {self.fingerprint}: it was sealed under another key, or "
                "damaged. Run the backup again."
            ) from None

    def _derived(self, purpose: bytes, length: int) -> bytes:
        return HKDF(SHA256(), length, salt=None, info=purpose).derive(self.secret)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PersonalKey) and other.secret == self.secret

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"PersonalKey({self.fingerprint})"


class PersonalKeys:
    """The keys that the settings name: the first encrypts, all of them read. Without any, personal data is kept like all else.

    `fault` says what is wrong with the variable, so that only those who need the key hear of it: a snapshot can be listed without.
    """

    def __init__(self, keys: Sequence[PersonalKey] = (), fault: str = "") -> None:
        self._keys = {key.fingerprint: key for key in reversed(keys)}
        self._first = keys[0] if keys else None
        self._fault = fault

    @property
    def fingerprints(self) -> list[str]:
        """Of all of them, the one that encrypts first."""
        return [*reversed(self._keys)]

    def to_write(self) -> PersonalKey | None:
        """The key that encrypts; none where the settings name none. A `ConfigurationError` where they do and it is not there."""
        if self._fault:
            raise ConfigurationError(self._fault)
        return self._first

    def get(self, fingerprint: str) -> PersonalKey | None:
        """The key of that name, where we have it."""
        return self._keys.get(fingerprint)

    def to_read(self, fingerprint: str, what: str) -> PersonalKey | None:
        """The key that `what` was encrypted with; none where `fingerprint` is empty. A `ConfigurationError` where we do not have it."""
        if not fingerprint:
            return None
        key = self.get(fingerprint)
        if key is None:
            raise ConfigurationError(f"{what} is encrypted with the personal key {fingerprint}. {self.why_not}")
        return key

    @property
    def why_not(self) -> str:
        """Why a key is not there, and what to do."""
        if self._fault:
            return self._fault
        if not self._keys:
            return 'Name the variable that holds it in bookferry.toml, such as personal_key_env = "BOOKFERRY_PERSONAL_KEY", and set that.'
        held = ", ".join(self.fingerprints)
        return (
            f"The variable that personal_key_env names holds another one ({held}). Set it to that key, or add that key after the one in "
            "use, with a blank between them."
        )


def personal_keys(settings: Settings, environ: Mapping[str, str] = os.environ) -> PersonalKeys:
    """The keys in the variable that `personal_key_env` names: one, or several with blanks between them, the newest first."""
    variable = settings.personal_key_env
    if variable is None:
        return PersonalKeys()
    where = f"{settings.path}: personal_key_env"
    if not (value := environ.get(variable, "").split()):
        state = "empty" if variable in environ else "not set"
        if not variable.isupper():
            fault = f"must be the name of an environment variable that holds the key, never the key. The variable it names is {state}"
        else:
            fault = f"names the environment variable {variable}, which is {state}. It holds the key for users' personal data: export it"
        return PersonalKeys(fault=f"{where} {fault}. {MAKE_ONE}.")
    try:
        return PersonalKeys([PersonalKey.parse(key) for key in value])
    except ValueError:
        fault = "the variable that it names holds no key of 32 bytes in base64, nor several with blanks between them"
        return PersonalKeys(fault=f"{where}: {fault}. {MAKE_ONE}.")
