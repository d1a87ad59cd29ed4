"""The Python API: open an index, search it folded, write to it, examine it; or compare texts without one.

``shinglefold.open``, ``open_async``, ``setup``, ``remove``, ``pairs``, ``groups``, ``compare`` and
``fold_chunks`` are here.
"""
