"""Tests of the Iceberg tables."""
