"""The words that no other language takes, unchanged."""

from shinglefold.contracts.language import Language
from shinglefold.model.values import Sample


class AnyLanguage(Language):
    """Words of other scripts, and numbers: canon folds case, width and apostrophes, nothing else."""

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
        """Return the word unchanged."""
        return word
