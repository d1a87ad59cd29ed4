"""The plugin's Java tests hold it to what Python decides now."""

import json

from support.golden.plugin_vectors import RECORD, text, vectors


def test_the_vectors_on_record_are_what_python_decides():
    """Where results are meant to change, write them anew: ``python -m support.golden.plugin_vectors``."""
    made = vectors()
    assert json.loads(RECORD.read_text("utf-8")) == json.loads(text(made))
    kinds = {
        name for page in made["pages"] for name in ("unsigned", "unreadable", "other_schemes") if page[name]
    }
    assert kinds == {"unsigned", "unreadable", "other_schemes"}
    assert all(any(len(members) > 2 for _, members in page["groups"]) for page in made["pages"])
