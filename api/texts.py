"""Near-duplicates among texts in memory, without an index."""

from collections.abc import Sequence
from typing import NamedTuple

from shinglefold.errors import ConfigError
from shinglefold.ingest import Fingerprinter
from shinglefold.ingest.fingerprinter import FingerprintArrays
from shinglefold.ingest.processors.texts import WORD_CLASSES, NeverDiffer
from shinglefold.model.scheme import Scheme, thresholds
from shinglefold.model.values import WordClass
from shinglefold.offline.compare_texts import Comparison, compare_texts
from shinglefold.options.validation import check_fraction, check_texts
from shinglefold.registry import codes_with_any, make_scheme


class TextPair(NamedTuple):
    """Two near-duplicates, by their positions in the list.

    ``resemblance``: the share of common shingles, estimated, 0 to 1. ``similarity``: the edit similarity of
    the words, None for texts of more than 20,000 words.
    """

    a: int
    b: int
    resemblance: float
    similarity: float | None


def pairs(
    texts: Sequence[str],
    *,
    similarity: float | None = None,
    languages: Sequence[str] | None = None,
    never_differ: Sequence[WordClass] = (),
) -> list[TextPair]:
    """Return all near-duplicate pairs of a list of texts.

    Args:
        texts: plain texts; strip HTML first (``shinglefold.canon.strip_html``).
        similarity: the edit similarity of words that a pair must reach, 0 to 1; by default 0.8.
        languages: codes of the languages the texts may be in; by default all that are installed.
        never_differ: words that must be the same in both texts of a pair: ``"numbers"``, ``"letters"``.

    Returns:
        Pairs with a < b, ascending.

    Raises:
        ConfigError: an argument is not valid.
        UnknownLanguage: no plugin has such a language.

    Cost: about 0.1 ms a text of 500 words, and work in proportion to the pairs found.
    """
    prints, scheme = _fingerprints(texts, similarity, languages, never_differ)
    found = prints.pairs(scheme)
    columns = (column.tolist() for column in (found.a, found.b, found.resemblance, found.similarity))
    return [
        TextPair(a, b, resemblance, None if alike != alike else alike)  # noqa: PLR0124 - NaN
        for a, b, resemblance, alike in zip(*columns, strict=True)
    ]


def groups(
    texts: Sequence[str],
    *,
    similarity: float | None = None,
    languages: Sequence[str] | None = None,
    never_differ: Sequence[WordClass] = (),
) -> list[list[int]]:
    """Return the groups of near-duplicates in a list of texts, each as a list of positions.

    Every member of a group resembles its first one. Texts without a near-duplicate are in no group.

    Args, Raises: as ``pairs``.

    Cost: about 0.1 ms a text of 500 words, and less for each text that resembles another.
    """
    prints, scheme = _fingerprints(texts, similarity, languages, never_differ)
    members: dict[int, list[int]] = {}
    for place, leader in enumerate(prints.leaders(scheme).tolist()):
        members.setdefault(leader, []).append(place)
    return [group for group in members.values() if len(group) > 1]


def compare(
    a: str,
    b: str,
    *,
    similarity: float | None = None,
    languages: Sequence[str] | None = None,
    never_differ: Sequence[WordClass] = (),
) -> Comparison:
    """Compare two texts: ``folds`` says whether they are near-duplicates, the other fields why.

    Args, Raises: as ``pairs``.
    """
    scheme = _scheme(similarity, languages)
    check_texts([a, b])
    facts = _never_differ(never_differ).facts([a, b], [{}, {}])
    return compare_texts((a, b), ("a", "b"), (None, None), scheme, facts)


def _fingerprints(
    texts: Sequence[str],
    similarity: float | None,
    languages: Sequence[str] | None,
    never_differ: Sequence[WordClass],
) -> tuple[FingerprintArrays, Scheme]:
    check_texts(texts)
    scheme = _scheme(similarity, languages)
    facts = _never_differ(never_differ).facts(texts, [{} for _ in texts])
    return Fingerprinter(scheme).fingerprint_arrays(texts, facts=facts), scheme


def _never_differ(names: Sequence[WordClass]) -> NeverDiffer:
    found = NeverDiffer.parse(names)
    if found.fields:
        raise ConfigError.unknown(
            "class of words (in never_differ; texts have no fields)", found.fields[0], WORD_CLASSES
        )
    return found


def _scheme(similarity: float | None, languages: Sequence[str] | None) -> Scheme:
    check_fraction("similarity", similarity)
    scheme = make_scheme("default", codes_with_any(languages))
    return scheme if similarity is None else scheme.with_options(**thresholds(similarity))
