"""Storage of bytes: a folder or a bucket, behind one protocol. This package does not know what the bytes mean."""
