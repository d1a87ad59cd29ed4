"""Whether two documents are near-duplicates: estimators, edit similarity, the verifier."""
