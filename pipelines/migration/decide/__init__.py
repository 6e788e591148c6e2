"""How people decide the conflicts of a plan: in its page, and by a file that is taken over into the plan."""
