"""The processor of collections without an index: a fingerprint and what finds and decides pairs beside it."""

from collections.abc import Sequence
from typing import ClassVar

from shinglefold.canon.pieces import Cuttable
from shinglefold.ingest.fingerprint import Beside
from shinglefold.ingest.processors.supershingle import Supershingle


class FingerprintBeside(Supershingle):
    """Do what ``supershingle`` does, for pairs: no JSON comes of it, so no pipeline of an index has it."""

    type: ClassVar[str] = "fingerprint_beside"

    def _made(self, texts: Sequence[Cuttable], languages: Sequence[str | None]) -> Sequence[Beside]:
        return self.tools.fingerprinter.fingerprint_beside(list(map(str, texts)), languages)
