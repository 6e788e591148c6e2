"""Whole listings, page by page, with the proof that nothing is missing. Single requests are not made here."""
