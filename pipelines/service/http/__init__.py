"""Requests and responses: the transport layers, the budget and the meaning of a response. No endpoint is known here."""
