"""A faithful local implementation of the library service's REST API.

It rests on the service's API document alone and shares no code with the client: one misreading of the document must not
sit on both sides. ``README.md`` beside this file tells how to start it and what it assumes where the document is silent.
"""
