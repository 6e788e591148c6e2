"""What holds for every test: Hypothesis sets no deadline, since a busy machine is no finding."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
