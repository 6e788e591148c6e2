"""The scripted servers of the service's tests, and clients of them."""

from tests.service.conftest import client_for, clock, serve

__all__ = ["client_for", "clock", "serve"]
