"""What folds of the labelled pairs, by scheme and options: the figures that decide the defaults."""

import re
from collections.abc import Collection, Sequence

import numpy as np

from bench import corpora
from bench.table import Row
from shinglefold.ingest import Fingerprinter
from shinglefold.model.scheme import CanonOptions, Scheme
from shinglefold.model.values import Uint64s
from shinglefold.registry import make_scheme


def measure() -> list[Row]:
    """Return recall and precision on each labelled corpus for the schemes worth comparing."""
    return [
        _folded(corpus, name, scheme)
        for corpus in filter(corpora.available, corpora.LABELLED)
        for name, scheme in _schemes().items()
    ]


def _schemes() -> dict[str, Scheme]:
    dropping = CanonOptions(drop_function_words=True)
    return {
        "default": make_scheme(),
        "preset compact": make_scheme("compact"),
        "preset once": make_scheme("once"),
        "each shingle once": make_scheme().with_options(counted=False),
        "168 values of 4 bits": make_scheme().with_options(values=168, bits=4),
        "672 values of 1 bit": make_scheme().with_options(values=672, bits=1),
        "w=1, t=.70": make_scheme().with_options(word_width=1, char_width=1, min_resemblance=0.7),
        "function words dropped": make_scheme(options=dropping),
        "function words dropped, t=.60": make_scheme(options=dropping).with_options(min_resemblance=0.6),
        "function words and adjectives dropped": make_scheme(
            options=CanonOptions(drop_function_words=True, drop_adjectives=True)
        ),
        "stems": make_scheme(options=CanonOptions("stem")),
        "surface forms": make_scheme(options=CanonOptions("surface")),
        "t=.58": make_scheme().with_options(min_resemblance=0.58),
        "t=.64": make_scheme().with_options(min_resemblance=0.64),
        "w=3": make_scheme().with_options(word_width=3, char_width=3),
        "14×6": make_scheme().with_options(groups=14, group_size=6),
        "preset classic": make_scheme("classic"),
        "preset fetterly": make_scheme("fetterly"),
    }


def _folded(corpus: str, name: str, scheme: Scheme) -> Row:
    if scheme.decision.verify == "text":
        scheme = scheme.with_options(verify="signature")
    prints = Fingerprinter(scheme).fingerprint_arrays(corpora.texts(corpus))
    found = prints.pairs(scheme)
    ids = [page["id"] for page in corpora.pages(corpus)]
    labelled = _labelled(corpus)
    folded = {
        (min(ids[a], ids[b]), max(ids[a], ids[b]))
        for a, b in zip(found.a.tolist(), found.b.tolist(), strict=True)
        if labelled[a] and labelled[b]
    }
    truth = corpora.labels(corpus)
    same = {pair for pair, similarity in truth.items() if similarity >= 0.95}
    positive = {pair for pair, similarity in truth.items() if similarity >= 0.8}
    wrong = sum(truth.get(pair, 0.0) < 0.7 for pair in folded)
    recall = len(positive & folded) / len(positive)
    precision = len(positive & folded) / max(1, len(folded))
    f1 = 2 * recall * precision / max(1e-9, recall + precision)
    nominated = _nominated(prints.supershingles[:, : scheme.sketch.groups], prints.digests, ids, positive)
    note = (
        f"keywords nominate {nominated:.4f} of pairs ≥ .80; "
        f"recall {len(same & folded) / len(same):.3f} of pairs ≥ .95, {recall:.3f} of those ≥ .80; "
        f"{wrong / max(1, len(folded)):.2%} of {len(folded):,} folded below .70"
    )
    return Row(f"{corpus}: {name}", f1, "F1 at .80", note)


def _nominated(
    keywords: Uint64s, digests: Sequence[str], ids: Sequence[str], pairs: Collection[tuple[str, str]]
) -> float:
    """Return the share of pairs that share a stored keyword, or the text."""
    place = {id_: at for at, id_ in enumerate(ids)}
    a, b = np.array([(place[one], place[other]) for one, other in pairs]).T
    texts = np.array(digests)
    return float(np.mean((keywords[a] == keywords[b]).any(axis=1) | (texts[a] == texts[b])))


def _labelled(corpus: str) -> list[bool]:
    """Tell which pages the labels speak of: those of 30 tokens (of 30 characters, in Chinese) and more."""
    token = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
    return [len(token.findall(text)) >= 30 for text in corpora.texts(corpus)]
