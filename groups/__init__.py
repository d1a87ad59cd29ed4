"""Groups in the index: their numbers, and the gate that decides before a document is stored."""

from typing import TYPE_CHECKING

from shinglefold.runtime.optional_imports import lazy_attributes

if TYPE_CHECKING:
    from shinglefold.groups.gate.async_gate import AsyncGate
    from shinglefold.groups.gate.gate import Gate
    from shinglefold.groups.gate.protocol.member import Verdict
    from shinglefold.groups.gate.protocol.policy import Policy

__all__ = ["AsyncGate", "Gate", "Policy", "Verdict"]

# Who numbers groups, or reports on them, needs no gate.
__getattr__ = lazy_attributes(
    __name__,
    {
        "AsyncGate": "shinglefold.groups.gate.async_gate",
        "Gate": "shinglefold.groups.gate.gate",
        "Policy": "shinglefold.groups.gate.protocol.policy",
        "Verdict": "shinglefold.groups.gate.protocol.member",
    },
)
