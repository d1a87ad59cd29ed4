"""How much a writer takes before it commits by itself."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Portion:
    """After how much a writer commits by itself, and how much memory tantivy may take meanwhile.

    ``actions`` and ``size`` (bytes of sources) also bound what a crash can lose.
    """

    actions: int = 20_000
    size: int = 64_000_000
    memory: int = 64_000_000
