"""Measures Bookferry against other tools on the same made-up library, from the same server, in the same run."""
