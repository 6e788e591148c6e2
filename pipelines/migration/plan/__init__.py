"""Making a plan: match the records of both libraries, merge them field by field, collect conflicts. Only reads."""
