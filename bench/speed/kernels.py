"""The kernel, text → fingerprint as JSON, on one core: by default and at 168 values, beside its peers."""

from collections.abc import Callable, Sequence

from bench.clock import in_turns, processor_time
from bench.speed.peers import Peer, assert_answers, missing, peers
from bench.speed.samples import Sample, absent, samples
from bench.table import Row
from shinglefold.canon import token_hash
from shinglefold.ingest import Fingerprinter
from shinglefold.registry import make_scheme

ROUNDS = 7
#: Presets: the default, and the one whose signatures have as many values as those of the peers.
_PRESETS = {"default": "336 values", "once": "168 values"}


def measure() -> list[Row]:
    """Return µs of CPU for 500 tokens on one core, warm, of each way its best round; and the ratios."""
    rows = [row for sample in samples() for row in _rows(sample)]
    told = [f"peer not installed (pip install 'shinglefold[bench]'): {name}" for name in missing()]
    told += [f"corpus not at hand (SHINGLEFOLD_DATA): {name}" for name in absent()]
    return [*rows, *(Row(one, 0, "measured") for one in told)]


def _rows(sample: Sample) -> list[Row]:
    texts = sample.texts
    plain = {preset: Fingerprinter(make_scheme(preset)) for preset in _PRESETS}
    compiled = {preset: Fingerprinter(make_scheme(preset)) for preset in _PRESETS}
    cold = processor_time(lambda: plain["default"].fingerprint_json(texts))
    for preset in _PRESETS:
        assert compiled[preset].compile(), "the extra fast is not installed"
        assert compiled[preset].fingerprint_json(texts) == plain[preset].fingerprint_json(texts)
    _assert_tokens(plain["default"], texts[:20])
    ways: dict[str, Callable[[], object]] = {}
    for preset, values in _PRESETS.items():
        ways[f"numpy, {values}"] = lambda own=plain[preset]: own.fingerprint_json(texts)
        ways[f"compiled, {values}"] = lambda own=compiled[preset]: own.fingerprint_json(texts)
    beside = peers(sample.language)
    for peer in beside:
        assert_answers(peer, sample.language, sample.words)
        ways[peer.name] = lambda own=peer: own.sign(_share(own, texts), sample.words)
    least = in_turns(ways, ROUNDS)
    for peer in beside:
        own = _share(peer, texts)
        least[peer.name] *= sum(map(len, texts)) / sum(map(len, own))
    tokens = len(plain["default"].canonicalizer.hash_batch(texts).hashes)
    note = f"{sample.name}; {len(texts)} documents, {tokens / len(texts):.0f} tokens each"
    share = 500e6 / tokens
    rows = [Row("kernel, cold: numpy, 336 values", cold * share, "µs / 500 tokens", note)]
    rows += [Row(f"kernel: {way}", value * share, "µs / 500 tokens", note) for way, value in least.items()]
    return rows + [
        Row(f"{peer.name} ÷ {way}", least[peer.name] / least[way], "times", sample.name)
        for peer in beside
        for way in ways
        if way.startswith(("numpy", "compiled"))
    ]


def _share(peer: Peer, texts: Sequence[str]) -> Sequence[str]:
    return texts[: max(4, int(len(texts) * peer.share))]


def _assert_tokens(made: Fingerprinter, texts: Sequence[str]) -> None:
    batch = made.canonicalizer.hash_batch(texts)
    words = [token_hash(token.text) for text in texts for token in made.canonicalizer.tokens(text)]
    assert batch.hashes.tolist() == words
    assert made.fingerprint(texts) == [made.fingerprint([text])[0] for text in texts]
