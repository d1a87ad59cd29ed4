"""Write documents to an index: worker processes, bulk requests, accounting, dead letters."""
