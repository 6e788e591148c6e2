"""Requests and responses: the rings of the transport, the budget, and the meaning of a response. No endpoint is known here."""
