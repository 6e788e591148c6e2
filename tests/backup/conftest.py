from __future__ import annotations

from tests.backup.files.conftest import plain_environment, shelf

__all__ = ["plain_environment", "shelf"]
