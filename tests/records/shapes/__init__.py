"""The shapes of records, and the columns that follow from them."""
