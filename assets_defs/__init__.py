"""Bookferry's Dagster: assets, checks, jobs and schedules over `pipelines`; `definitions` wires them."""
