"""The state of all libraries on one screen, from what is stored."""
