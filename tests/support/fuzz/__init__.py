"""Malformed inputs by the thousand: spoilers of bytes and of JSON, what they are thrown at, and the run."""
