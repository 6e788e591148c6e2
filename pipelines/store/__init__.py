"""Storage: captures in progress, published snapshots, the files of a library, the DuckDB catalogue and the tables in Postgres."""
