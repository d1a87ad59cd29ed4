"""What is made of documents before they come to the engine, by the processes that fingerprint them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from shinglefold.engines.embedded.fields import Kind
from shinglefold.engines.embedded.mapping import definition_for
from shinglefold.engines.embedded.sources import halves
from shinglefold.local_engines import Ready, WordsOf

#: What stands beside the fields of a document on its way.
_BESIDE = ("_id", "_index")


class Beforehand:
    """Makes the words of texts that an index will want, and the JSON it will keep.

    Args:
        kinds: the kinds of the fields by the path of their values, as far as they are mapped.
        objects: how objects take new fields, by path; see ``Catalog``.
        words: makes the words of many texts at once.
    """

    def __init__(
        self,
        kinds: Mapping[str, frozenset[Kind]],
        objects: Mapping[str, str],
        words: Callable[[Sequence[str]], list[str]],
    ) -> None:
        self._kinds, self._objects, self._words = kinds, objects, words

    def __call__(self, documents: Sequence[Mapping[str, Any]]) -> list[Ready]:
        """Return what is made of each document."""
        fields = [{name: value for name, value in one.items() if name not in _BESIDE} for one in documents]
        texts = [list(dict.fromkeys(self._texts(own, "", self._objects[""]))) for own in fields]
        made = iter(self._words([text for several in texts for text in several]))
        words: Iterator[WordsOf] = ({text: next(made) for text in several} for several in texts)
        return [Ready(said, halves(own)) for said, own in zip(words, fields, strict=True)]

    def _texts(self, value: Mapping[str, Any], above: str, manner: str) -> Iterator[str]:
        for name, item in value.items():
            yield from self._of(item, f"{above}.{name}" if above else str(name), manner)

    def _of(self, item: object, path: str, manner: str) -> Iterator[str]:
        if isinstance(item, str):
            if self._is_text(item, path, manner):
                yield item
        elif isinstance(item, Mapping):
            own = self._objects.get(path, manner)
            if own != "disabled":
                yield from self._texts(item, path, own)
        elif isinstance(item, list | tuple) and self._may_have_texts(path):
            for one in item:
                yield from self._of(one, path, manner)

    def _may_have_texts(self, path: str) -> bool:
        """Tell whether there may be texts under a path: not where it is mapped as something else."""
        kinds = self._kinds.get(path)
        return not kinds or Kind.TEXT in kinds

    def _is_text(self, item: str, path: str, manner: str) -> bool:
        if kinds := self._kinds.get(path):
            return Kind.TEXT in kinds
        return manner == "true" and definition_for(item, True)["type"] == "text"
