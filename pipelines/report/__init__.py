"""The report of a snapshot, for librarians: problems of records and their remedies, as a page and as a table.

`issues` turns findings into lines and counts them, `tables` writes the lines, `pages` the page, and `build` puts it together and stores it
in the data folder. Jinja is imported when a page is made, not before.
"""
