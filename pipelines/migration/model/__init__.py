"""What a plan, the journal and a record to compare are. No request is made and nothing is decided here."""
