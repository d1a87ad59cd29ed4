"""What processors are made from: the scheme, one fingerprinter for all of them, and the meter."""

from dataclasses import dataclass, field

from shinglefold.canon import Canonicalizer
from shinglefold.errors import UnknownLanguage
from shinglefold.ingest.fingerprinter import Fingerprinter, Meter
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.registry import language_class


@dataclass(slots=True)
class Tools:
    """Shared by the processors of a pipeline."""

    scheme: Scheme
    canonicalizer: Canonicalizer
    meter: Meter = field(default_factory=Meter)
    #: Seals the fingerprints that are stored; None leaves them without a seal.
    seal: Seal | None = None
    fingerprinter: Fingerprinter = field(init=False)

    def __post_init__(self) -> None:
        self.fingerprinter = Fingerprinter(self.scheme, self.canonicalizer, self.meter)

    def warm(self) -> None:
        """Load the dictionaries, and compiled code in use, now, so that forked workers share them."""
        samples = (language_class(ref.code).samples[:1] for ref in self.scheme.languages)
        texts = [sample.a for found in samples for sample in found]
        self.canonicalizer.hash_batch(texts)
        if self.fingerprinter.is_compiled:
            self.fingerprinter.fingerprint(texts)
            self.meter.take()

    def expect(self, characters: int) -> None:
        """Load compiled code where so many characters are to come that it pays, before workers are forked."""
        if self.fingerprinter.expect(characters):
            self.warm()

    def language(self, code: object) -> str | None:
        """Return the language a document declares, or None (detect it) where it is none of the scheme's.

        ``ru-RU`` and ``zh_CN`` count as ``ru`` and ``zh``. A declared language nobody knows is counted, the
        document is not lost.
        """
        if code is None or code == "":
            return None
        known = self.fingerprinter.languages
        if isinstance(code, str):
            for candidate in (code, code.replace("_", "-").split("-")[0].lower()):
                if candidate in known:
                    return candidate
        self.meter.counts["unknown_language"] += 1
        return None

    def check(self, code: str | None, place: str) -> str | None:
        """Return a language code given as an option.

        Raises:
            UnknownLanguage: it is none of the scheme's.
        """
        if code is not None and code not in self.fingerprinter.languages:
            raise UnknownLanguage.unknown(f"language (in {place})", code, self.fingerprinter.languages)
        return code
