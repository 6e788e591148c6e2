from __future__ import annotations

from tests.files.conftest import plain_environment, shelf

__all__ = ["plain_environment", "shelf"]
