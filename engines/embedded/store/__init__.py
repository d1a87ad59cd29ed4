"""The store of the embedded engine: a writer, a memtable, a write-ahead log, record files."""
