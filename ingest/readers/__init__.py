"""Readers: documents from JSON lines, CSV, folders and streams, whatever their encoding."""
