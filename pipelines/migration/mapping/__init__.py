"""How records become those of another library where the service documents neither: what is learned of them, and what a person answers."""
