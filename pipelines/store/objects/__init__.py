"""Where bytes are kept: a folder or a bucket, behind one protocol. What they mean is not known here."""
