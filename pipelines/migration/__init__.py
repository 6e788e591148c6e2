"""Moving a library: what is to be written (plan), writing it (apply), proof (verify) and the way back (undo)."""
