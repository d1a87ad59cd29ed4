"""The intents that a gate knows of, by what they may have in common with a newcomer."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from shinglefold.groups.gate.protocol.requests import Intent


@dataclass(slots=True)
class Known:
    """Intents, open or decided, whose documents searches need not see yet.

    ``left``: attempts that were given up. ``claims``: the groups in which attempts want a place.
    """

    left: set[str] = field(default_factory=set)
    claims: dict[str, int] = field(default_factory=dict)
    _intents: dict[str, Intent] = field(default_factory=dict)
    #: By word the attempts that have it: mostly one.
    _words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: How many rounds each is in.
    _times: Counter[str] = field(default_factory=Counter)

    def learn(self, intents: Iterable[Intent]) -> None:
        """Add the intents of a round."""
        words = self._words
        for one in intents:
            self._times[one.attempt] += 1
            self._intents[one.attempt] = one
            if self._times[one.attempt] > 1:
                continue
            for word in dict.fromkeys(one.words):
                words[word] = (*words.get(word, ()), one.attempt)

    def forget(self, intents: Iterable[Intent]) -> None:
        """Take the intents of a round away."""
        for one in intents:
            self._times[one.attempt] -= 1
            if self._times[one.attempt]:
                continue
            del self._times[one.attempt], self._intents[one.attempt]
            self.left.discard(one.attempt)
            self.claims.pop(one.attempt, None)
            for word in dict.fromkeys(one.words):
                if rest := tuple(other for other in self._words.pop(word) if other != one.attempt):
                    self._words[word] = rest

    def sharing(self, words: Sequence[str]) -> list[Intent]:
        """Return the intents that have one of some words, in the order of their attempts."""
        found = {attempt for word in words for attempt in self._words.get(word, ())}
        return [self._intents[attempt] for attempt in sorted(found)]

    def claiming(self, group: int) -> list[Intent]:
        """Return the intents that want a place in a group, in the order of their attempts."""
        return [
            self._intents[attempt]
            for attempt, claimed in sorted(self.claims.items())
            if claimed == group and attempt in self._intents
        ]
