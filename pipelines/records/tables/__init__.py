"""Descriptions of all tables. `registry` finds one by its name or its resource, `observed_columns` adds to one what was observed."""
