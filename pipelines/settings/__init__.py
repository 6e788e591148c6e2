"""bookferry.toml and the environment, checked. Nothing else in the project reads either."""
