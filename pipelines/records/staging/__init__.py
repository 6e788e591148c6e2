"""How publications become rows of the staged tables: a batch at once, record by record, or in the general way that takes any JSON."""
