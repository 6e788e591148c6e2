"""What people see of a plan: its page, its issues, its status."""
