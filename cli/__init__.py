"""The `bookferry` command: runs the Dagster jobs in process, shows progress, prints results."""
