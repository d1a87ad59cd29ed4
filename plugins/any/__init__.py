"""Any language: words as they are."""

from shinglefold.contracts.language import Language
from shinglefold.model.values import Sample


class AnyLanguage(Language):
    """Any language, and numbers: canon's own folds (case, width, apostrophes) and nothing else."""

    code = "any"
    scripts = frozenset({"Zyyy"})
    samples = (
        Sample("Καλημέρα, ΚΌΣΜΕ!", "καλημέρα κόσμε", True),
        Sample("Ａｂｃ １２３", "abc 123", True),
        Sample("l’été à Cannes", "L'E\u0301TE\u0301 A\u0300 CANNES", True),
        Sample("გამარჯობა მსოფლიო", "გამარჯობა, მსოფლიო.", True),
        Sample("ο καιρός σήμερα είναι καλός", "η ομάδα κέρδισε τον αγώνα", False),
        Sample("1 2 3", "4 5 6", False),
    )

    def canonical(self, word: str) -> str | None:
        """Return the word."""
        return word
