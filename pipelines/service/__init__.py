"""All that speaks HTTP to a library: transport rings, budget, sign-in, client and listing."""
