"""What the service itself says about its resources: its description, its records, and what changes in them from night to night."""
