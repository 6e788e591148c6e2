"""The forms in which a service takes the writes of resources that nothing describes: which are tried, and which it is known to take."""
