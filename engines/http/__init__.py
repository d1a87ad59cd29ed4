"""The parts that the engines for OpenSearch and Elasticsearch share."""
