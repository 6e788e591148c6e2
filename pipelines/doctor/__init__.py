"""Checks whether the nightly job would work, and how the service behaves, without changing anything.

This package has checks, each a plain function from observations to a result. It does not print, and it does not write.
"""
