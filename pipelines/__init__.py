"""Bookferry in plain Python, all that it knows; nothing here imports Dagster."""
