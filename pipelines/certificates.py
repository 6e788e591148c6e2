"""The certificates that the environment names for encrypted connections."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from pipelines.errors import ConfigurationError

CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""The variables of OpenSSL, which httpx and obstore heed."""


def check_certificates(file: str, folder: str) -> None:
    """Raises `ConfigurationError` where what the environment names cannot be used: no server could be trusted."""
    if folder and not file and not any(map(_has_certificate, folder.split(os.pathsep))):
        raise ConfigurationError(
            f"The environment variable SSL_CERT_DIR names folders without a certificate by the name that OpenSSL looks for: "
            f"{folder!r}. Correct it, run `openssl rehash` on it, or unset it to trust the usual authorities."
        )
    try:
        if file:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file)
    except OSError as error:  # `ssl.SSLError` is one: a file without a certificate
        reason = "it has no certificate" if isinstance(error, ssl.SSLError) else (error.strerror or "it cannot be read")
        raise ConfigurationError(
            f"The environment variable SSL_CERT_FILE names certificates that cannot be used: {file!r}: {reason}. "
            "Correct it, or unset it to trust the usual authorities."
        ) from None


def _has_certificate(folder: str) -> bool:
    """Whether a folder has a file under such a name as OpenSSL looks for, which is a hash of its owner's."""
    return any(Path(folder).glob("[0-9a-f]" * 8 + ".[0-9]*"))
