"""How long PyIceberg's own access to a bucket, through pyarrow, goes on while the service fails."""

from __future__ import annotations

from pyarrow.fs import AwsStandardS3RetryStrategy

ATTEMPTS = 12
"""With pauses that double up to 20 seconds, and half of that on average, they outlast a minute."""


class PatientRetries(AwsStandardS3RetryStrategy):
    """PyIceberg makes one without arguments, by its name."""

    def __init__(self) -> None:
        super().__init__(max_attempts=ATTEMPTS)
