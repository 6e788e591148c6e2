"""All HTTP to a library: transport, budget, sign-in, client, lists and files."""
