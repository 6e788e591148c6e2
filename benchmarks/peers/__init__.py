"""Other tools that do a part of the same job, each in a process of its own."""
