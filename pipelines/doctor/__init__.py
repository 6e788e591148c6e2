"""Finds out whether the nightly job would work, and what the service is like, without changing anything anywhere.

Goes here: checks, each a plain function from what was seen to a finding. Does not: how they are printed, and anything that writes.
"""
