"""Bookferry's command line: runs the Dagster jobs in process, shows progress, prints results."""
