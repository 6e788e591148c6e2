"""The keys for personal data: they encrypt the Parquet tables about people, and seal what a backup writes on the way to them.

Parquet files are encrypted with the key itself, so that every engine with Parquet's encryption can read them. Everything else is sealed
here, with a key that is derived from it. The keys come from the environment and are stored nowhere.

The library for sealing is imported with the first key: many libraries have none.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from pipelines.errors import ConfigurationError, StorageError

if TYPE_CHECKING:
    from pipelines.settings.settings import Settings

KEY_BYTES = 32
"""AES-256."""

_SEAL = b"BFS1"
"""First bytes of sealed content. A nonce and the output of AES-GCM follow."""
_NONCE_BYTES = 12

HOW_TO_MAKE_A_KEY = (
    "Make the first one with `openssl rand -base64 32`. Keep a copy in a safe place: without the key, the data is lost"
)


class PersonalKey:
    """One key. Manifests name it by its `fingerprint`, which reveals nothing of the key."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise ValueError("not 32 bytes")
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  see the module's docstring

        self.secret = secret
        self.fingerprint = self._derived(b"bookferry: name of a key", 8).hex()
        self._comparing = self._derived(b"bookferry: compared values", KEY_BYTES)
        self._sealing = AESGCM(self._derived(b"bookferry: sealed bytes", KEY_BYTES))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads a key in base64, as `openssl rand -base64 32` prints it. Raises a `ValueError` that does not show the text."""
        try:
            return cls(base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError):
            raise ValueError("not 32 bytes in base64") from None

    @property
    def text(self) -> str:
        """The key in base64."""
        return base64.b64encode(self.secret).decode()

    def seal(self, content: bytes) -> bytes:
        """Encrypts `content`. The result is 32 bytes longer, and differs each time."""
        nonce = os.urandom(_NONCE_BYTES)
        return _SEAL + nonce + self._sealing.encrypt(nonce, content, _SEAL)

    def unseal(self, sealed: bytes) -> bytes:
        """Decrypts sealed bytes. Raises `StorageError` where they were sealed under another key, changed or cut off."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415

        form, nonce, content = sealed[:4], sealed[4 : 4 + _NONCE_BYTES], sealed[4 + _NONCE_BYTES :]
        try:
            return self._sealing.decrypt(nonce, content, form)
        except (InvalidTag, ValueError):
            raise StorageError(
                f"Personal data in the work folder cannot be read with the key {self.fingerprint}: it was sealed under another key, or "
                "damaged. Run the backup again."
            ) from None

    def digest(self, text: str) -> str:
        """A digest that only this key makes, by which personal values are compared; 32 hexadecimal digits."""
        return hmac.digest(self._comparing, text.encode(), "sha256")[:16].hex()

    def _derived(self, purpose: bytes, length: int) -> bytes:
        from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415

        return HKDF(SHA256(), length, salt=None, info=purpose).derive(self.secret)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PersonalKey) and other.secret == self.secret

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"PersonalKey({self.fingerprint})"


class PersonalKeys:
    """The keys that the settings name: the first one encrypts, each of them decrypts. Without a key, personal data is stored in the clear.

    `fault` is what is wrong with the variable. It is raised only when a key is needed, so that snapshots can be listed without one.
    """

    def __init__(self, keys: Sequence[PersonalKey] = (), fault: str = "") -> None:
        self._keys = {key.fingerprint: key for key in keys}
        self._fault = fault

    @property
    def fingerprints(self) -> list[str]:
        """The fingerprints of all keys, the encrypting key first."""
        return [*self._keys]

    def to_write(self) -> PersonalKey | None:
        """The encrypting key; none where the settings name none. Raises `ConfigurationError` where the named variable holds no key."""
        if self._fault:
            raise ConfigurationError(self._fault)
        return next(iter(self._keys.values()), None)

    def get(self, fingerprint: str) -> PersonalKey | None:
        """The key with this fingerprint, if it is among the keys."""
        return self._keys.get(fingerprint)

    def to_read(self, fingerprint: str, what: str) -> PersonalKey | None:
        """The key of `what`; none where `fingerprint` is empty. Raises `ConfigurationError` where the key is not among the keys."""
        if not fingerprint:
            return None
        key = self.get(fingerprint)
        if key is None:
            raise ConfigurationError(f"{what} is encrypted with the personal key {fingerprint}. {self.why_missing}")
        return key

    @property
    def why_missing(self) -> str:
        """Why a key is missing, and what to do."""
        if self._fault:
            return self._fault
        if not self._keys:
            return 'Name the variable with the key in bookferry.toml, such as personal_key_env = "BOOKFERRY_PERSONAL_KEY", and set it.'
        present = ", ".join(self.fingerprints)
        return (
            f"The variable that personal_key_env names holds another key ({present}). Set it to that key, or add that key after the one in "
            "use, with a blank between them."
        )


def personal_keys(settings: Settings) -> PersonalKeys:
    """The keys in the variable that `personal_key_env` names: one key, or several with blanks between them, the newest first."""
    variable = settings.personal_key_env
    if variable is None:
        return PersonalKeys()
    where = f"{settings.path}: personal_key_env"
    if not (value := os.environ.get(variable, "").split()):
        state = "empty" if variable in os.environ else "not set"
        if not variable.isupper():
            fault = f"must be the name of an environment variable with the key, never the key itself. The variable of that name is {state}"
        else:
            fault = f"names the environment variable {variable}, which is {state}. It must hold the key for users' personal data: export it"
        return PersonalKeys(fault=f"{where} {fault}. {HOW_TO_MAKE_A_KEY}.")
    try:
        return PersonalKeys([PersonalKey.parse(key) for key in value])
    except ValueError:
        fault = "the variable of that name holds no key of 32 bytes in base64, nor several with blanks between them"
        return PersonalKeys(fault=f"{where}: {fault}. {HOW_TO_MAKE_A_KEY}.")
