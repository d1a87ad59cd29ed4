"""One page: how its hits are read and fetched, the response built of them, members, cursors, native pages."""
