"""Undoing a plan: takes back what the journal says the plan wrote, as far as nobody changed it since."""
