"""Groups in the index: their numbers, and the gate that decides before a document is stored."""

from typing import TYPE_CHECKING

from shinglefold.runtime.optional_imports import lazy_attributes

if TYPE_CHECKING:
    from shinglefold.grouping.gate.async_gate import AsyncGate
    from shinglefold.grouping.gate.gate import Gate
    from shinglefold.grouping.gate.protocol.pending_document import Verdict
    from shinglefold.grouping.rules import Policy

__all__ = ["AsyncGate", "Gate", "Policy", "Verdict"]

# Numbering and reports need no gate: it is imported on first use.
__getattr__ = lazy_attributes(
    __name__,
    {
        ".gate.async_gate": "AsyncGate",
        ".gate.gate": "Gate",
        ".gate.protocol.pending_document": "Verdict",
        ".rules": "Policy",
    },
)
