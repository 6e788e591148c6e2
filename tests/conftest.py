"""What holds for every test: Hypothesis sets no deadline, since a busy machine is no finding, and nobody's sign-ins are touched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(scope="session", autouse=True)
def no_sign_in_of_a_person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test, nor any process that it starts, touches the sign-ins that somebody has on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.delenv("BOOKFERRY_TOKENS", raising=False)
        yield
