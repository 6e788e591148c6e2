"""The commands: arguments, options and help of each. The modules of `cli` do the work; `cli.app` lists all commands."""
