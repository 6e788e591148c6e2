from __future__ import annotations

from tests.backup.files.conftest import file_library, plain_environment

__all__ = ["file_library", "plain_environment"]
