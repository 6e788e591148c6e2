"""Imported last by the process that forks: what is there stays there, and its pages need no copy."""

import gc

gc.collect()
gc.freeze()
