"""Reports on a plan: its page, its issues, its status."""
