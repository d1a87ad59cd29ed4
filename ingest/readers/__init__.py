"""Readers of documents: JSON lines, CSV, HTML pages, texts, folders."""
