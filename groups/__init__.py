"""Groups in the index: their numbers, and the gate that decides before a document is stored."""
