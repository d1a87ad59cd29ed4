"""Reading hits until a page is full: windows, where the next one begins, and what an answer lacks."""
