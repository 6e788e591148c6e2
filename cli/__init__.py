"""Bookferry's command line: each command does its work here, shows progress, answers, and tells Dagster what it made."""
