"""Bookferry's sandbox: a local implementation of the library service's REST API.

It follows docs/service.md and shares no code with the client, so that a misunderstanding cannot be on both sides. ``README.md``
beside this file says how to start it, and docs/service.md what is assumed.
"""
