"""The processors of pipelines."""
