"""The staged tables as tables of Apache Iceberg: the files of the snapshots are registered in a catalogue, and not copied."""
