"""Whether the nightly backup of a library would work, and how the library answers. Nothing is changed.

`checks.py` is the table of all that is checked; `look.py` is what the checks see: settings, machine, and the library's answers, each asked
for once. `describe` shows the same answers (`described_fields.py`).
"""
