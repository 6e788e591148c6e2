"""What an apply does with authorities that the service makes by itself."""
