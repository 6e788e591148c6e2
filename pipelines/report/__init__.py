"""The report of a snapshot, for librarians: problems of records and their remedies, as a page, as Markdown and as a table.

`issues` turns findings into lines of the table and counts them, `plots` draws, `pages` writes the page and the Markdown, `build` puts it
together and stores it in the data folder. Jinja is imported when a report is made, not before.
"""
