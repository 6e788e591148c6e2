"""What we keep: captures in progress, published snapshots, the DuckDB catalogue over them."""
