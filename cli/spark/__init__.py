"""Commands that run on Apache Spark: ``python -m shinglefold.cli.spark``."""
