"""Calls with no environment but the given variables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar
from unittest import mock

P = ParamSpec("P")
R = TypeVar("R")


def with_variables(variables: Mapping[str, str], call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What a call returns where these variables alone are set."""
    with mock.patch.dict(os.environ, variables, clear=True):
        return call(*args, **kwargs)
