"""Snapshots, the captures they are made from, the blobs they share, and the lease of a tenant."""
