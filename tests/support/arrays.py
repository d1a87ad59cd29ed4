"""Arrays for property tests."""

import numpy as np
from hypothesis import strategies as st


def words_of_a_text(least: int = 0, most: int = 60) -> st.SearchStrategy[np.ndarray]:
    """Return hashes of the words of texts, some of which come again."""
    word = st.integers(0, 2**64 - 1) | st.integers(0, 5)
    return st.lists(word, min_size=least, max_size=most).map(lambda words: np.array(words, np.uint64))
