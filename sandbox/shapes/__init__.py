"""Other shapes of the resources of version 3, as a file describes them (sandbox/README.md, "Other shapes").

``definition.py`` reads the file; ``translation.py`` translates records and payloads of one resource; ``version.py`` makes the version
that serves the shapes. The declared endpoints and the state below them stay as they are.
"""
