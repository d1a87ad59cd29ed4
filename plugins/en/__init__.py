"""English: Snowball (Porter2) stems."""

from typing import ClassVar

from shinglefold.contracts.language import Language
from shinglefold.model.scheme import CanonOptions, Mode
from shinglefold.model.values import Sample
from shinglefold.plugins.resources import Snowball, read_words

_LONGEST = 64


class English(Language):
    """English texts, and English words within other texts."""

    code = "en"
    scripts = frozenset({"Latn"})
    precedence = 10
    modes: ClassVar[frozenset[Mode]] = frozenset({"stem"})
    # The stem of "agree" is "agre", whose own stem is "agr".
    idempotent = False
    values = (
        "zero two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand "
        "million billion half quarter twice first second third fourth fifth sixth seventh eighth ninth "
        "tenth true false yes january february march april may june july august september october november "
        "december monday tuesday wednesday thursday friday saturday sunday minute hour day week month year "
        "decade century"
    )
    negations = (
        "not no never neither nor without cannot can't couldn't don't doesn't didn't hasn't haven't hadn't "
        "isn't aren't wasn't weren't mustn't needn't shouldn't won't wouldn't"
    )
    articles = "a an the any"
    samples = (
        Sample("The cats were sleeping on the roofs", "cat were sleep roof", True),
        Sample("CONNECTED connections", "connect connecting", True),
        Sample("the dog’s bone", "dog bones", True),
        Sample("It's an editor's note", "editorʼs notes", True),
        Sample("Résumés of the applicants", "re\u0301sume\u0301 applicant", True),
        Sample("Shares rose on the exchange", "The team won its last match", False),
        Sample("Install the program and restart the computer", "Chop the onions and fry the carrot", False),
    )

    def __init__(self, options: CanonOptions) -> None:
        super().__init__(options)
        self._stems = self.mode == "stem"
        self._dropped = read_words("en", "function_words.txt") if options.drop_function_words else frozenset()
        self._stemmer = Snowball("english")

    def canonical(self, word: str) -> str | None:
        """Return the stem or the word itself; None for a function word if they are dropped."""
        if word in self._dropped:
            return None
        if not self._stems or len(word) > _LONGEST or not word.replace("'", "").isalpha():
            return word
        return self._stemmer.stem(word)
