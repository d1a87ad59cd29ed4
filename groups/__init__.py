"""Groups in the index: their numbers, and the gate that decides before a document is stored."""

from shinglefold.groups.gate.aio import AsyncGate
from shinglefold.groups.gate.gate import Gate
from shinglefold.groups.gate.member import Verdict
from shinglefold.groups.gate.policy import Policy

__all__ = ["AsyncGate", "Gate", "Policy", "Verdict"]
