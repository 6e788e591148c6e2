from __future__ import annotations

from hypothesis import settings

settings.register_profile("records", deadline=None)  # times vary on a shared machine
settings.load_profile("records")
