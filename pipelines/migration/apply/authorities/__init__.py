"""What an apply does with authorities, and with locations, beside creating and changing them: it adopts and merges records."""
