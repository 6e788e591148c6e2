"""The report of a snapshot, for librarians: problems of records and their remedies, as a page, as Markdown and as a table.

`issues` converts findings to lines of the table and counts them, `plots` draws, `pages` writes the page and the Markdown, and `build` makes
the report and stores it in the data folder. Jinja is imported only when a report is made.
"""
