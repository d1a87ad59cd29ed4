"""The ``uniqueness`` processor, which passes documents through a gate."""

import os
from collections.abc import Sequence
from typing import ClassVar

from shinglefold.contracts.engine import Document
from shinglefold.engines import open_engine
from shinglefold.errors import ConfigError, ProcessorError, Refused
from shinglefold.grouping.gate.gate import Gate, document_id
from shinglefold.grouping.gate.protocol.pending_document import GateFields, Verdict
from shinglefold.grouping.rules import Policy
from shinglefold.ingest.processors.context import Options, ProcessorResult, Tools
from shinglefold.model.stored_fingerprint import stored_parts
from shinglefold.settings import load_settings


class Uniqueness:
    """Pass a document on only if the policy of a gate accepts it.

    It is the last step, after ``supershingle``. The gate stores an accepted document with its group, and the
    run writes the same document again. A refused one fails with the id of the document that it resembles, for
    ``on_failure`` or the dead letters.

    Options:
        index: the index of the gate.
        engine: the address of a server, by default the setting ``data_dir``. The gate and the run can't both
            write to an embedded index.
        policy: ``refuse``, ``tag`` or ``cap``.

    ``most``, ``min_resemblance``, ``min_length_ratio``, ``measure``, ``scope`` (a list), ``min_characters``,
    ``max_characters``, ``verify`` and ``min_similarity`` are those of ``Policy``.
    """

    type: ClassVar[str] = "uniqueness"

    def __init__(self, options: Options, tools: Tools) -> None:
        self.index = options.text("index")
        self.address = options.optional("engine") or load_settings().data_dir
        self.policy = Policy(
            action=options.text("policy", "refuse"),  # type: ignore[arg-type]  # checked by the policy
            most=options.value("most", 1),
            min_resemblance=options.value("min_resemblance"),
            min_length_ratio=options.value("min_length_ratio"),
            measure=options.text("measure", "resemblance"),  # type: ignore[arg-type]
            scope=options.names("scope") if options.has("scope") else (),
            min_characters=options.value("min_characters"),
            max_characters=options.value("max_characters"),
            verify=options.value("verify"),
            min_similarity=options.value("min_similarity"),
        )
        self.place, self.tools = options.place, tools
        self._gate: tuple[int, Gate] | None = None

    def apply(self, documents: Sequence[Document]) -> list[ProcessorResult]:
        """Decide about documents by the gate, in one batch."""
        gate = self._open_gate()
        field = gate.recipe.field
        outcomes: list[ProcessorResult] = [
            {**document, "_id": document_id(document)}
            if stored_parts(document, field)
            else ProcessorError(f"no fingerprint in [{field}] yet: put this step after supershingle")
            for document in documents
        ]
        verdicts = iter(
            gate.admit(
                [
                    {name: value for name, value in document.items() if name != "_ingest"}
                    for document in outcomes
                    if isinstance(document, dict)
                ]
            )
        )
        gate.refresh()
        gate_fields = GateFields(field)
        return [
            self._outcome(outcome, next(verdicts), gate_fields) if isinstance(outcome, dict) else outcome
            for outcome in outcomes
        ]

    def _outcome(self, document: Document, verdict: Verdict, gate_fields: GateFields) -> ProcessorResult:
        if verdict.status == "accepted":
            return gate_fields.add_group(document, verdict.group, verdict.leads)
        if verdict.status == "failed" or verdict.like is None:
            return Refused(verdict.reason)
        return Refused(verdict.reason, verdict.like.id, verdict.like.likeness, verdict.group)

    def _open_gate(self) -> Gate:
        """Return the gate, opened at the first use: each worker process needs its own."""
        if self._gate is None or self._gate[0] != os.getpid():
            engine = open_engine(self.address)
            if not engine.can.seq_no:
                engine.close()
                raise ConfigError(
                    f"{self.place}: {self.address!r} is not a server; use shinglefold add instead"
                )
            gate = Gate(engine, self.index, self.policy, seal=self.tools.seal)
            self._gate = os.getpid(), gate
        return self._gate[1]
