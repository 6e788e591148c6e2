"""Measures Bookferry against other tools, on the same generated library, from the same server, in the same run."""
