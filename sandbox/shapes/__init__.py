"""Other shapes of the resources of version 3 (sandbox/README.md, "Other shapes").

``fields.py``: a field under another name and in another form. ``shape.py``: a resource. ``service.py`` reads the description of
shapes and makes the version that serves them. The state below them stays as it is.
"""
