"""What the project knows, in plain Python; nothing here imports Dagster."""
