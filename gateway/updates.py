"""Partial updates: the fingerprint of the merged document goes with them, guarded by its version."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shinglefold.contracts.engine import JSON, VersionedDocument
from shinglefold.gateway.indices import SignedIndex, check_document
from shinglefold.gateway.rest import warn
from shinglefold.ingest.pipeline.pipeline import Outcome
from shinglefold.maintenance.reconcile import new_fingerprint, stored_fingerprint, update_action

#: Rounds of reading, merging and writing a document that others change meanwhile.
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    """A partial update of a document.

    Attributes:
        body: without a fingerprint that the client brought.
        needs_document: whether the stored document decides what is sent.
    """

    index: SignedIndex
    id: str
    body: JSON
    needs_document: bool

    @classmethod
    def of(cls, index: SignedIndex, id_: str, body: Any) -> "UpdateRequest":  # noqa: ANN401 - JSON
        """Parse the body of an update; warn if its fingerprint can't be made."""
        if not isinstance(body, Mapping):
            return cls(index, id_, body, False)
        bare = {
            name: index.bare(value) if name in ("doc", "upsert") else value for name, value in body.items()
        }
        if "script" in bare:
            warn(
                f"a script updates {id_!r} in {index.name!r}, whose fingerprint stays as it is"
                f"{index.unchecked}. Run "
                f"`shinglefold backfill {index.name}`"
            )
            return cls(index, id_, bare, False)
        doc = bare.get("doc")
        inserts = bool(bare.get("doc_as_upsert")) or "upsert" in bare
        touches = isinstance(doc, Mapping) and index.touches(doc)
        if touches and index.gated:
            warn(f"an update of {id_!r} changes what its fingerprint is made of{index.unchecked}")
        return cls(index, id_, bare, touches or (inserts and isinstance(doc, Mapping)))

    def inserted(self) -> Any:  # noqa: ANN401 - JSON
        """Return the document that an update of a missing one stores; None if it stores none."""
        return self.body["doc"] if self.body.get("doc_as_upsert") else self.body.get("upsert")

    def merged(self, found: VersionedDocument) -> JSON:
        """Return the document that a stored one becomes, without a fingerprint."""
        merged: JSON = self.index.bare(_merge(found.source, self.body["doc"]))
        return merged

    def signed(self, found: VersionedDocument, outcome: Outcome) -> JSON:
        """Return the body that updates a stored document, given what the pipeline made of the merged one.

        Raises:
            ConfigError: the pipeline changes the id of the document.
        """
        check_document(outcome, self.index.name, self.id)
        kept = {name: value for name, value in self.body.items() if name not in ("upsert", "doc_as_upsert")}
        field, made = self.index.recipe.field, outcome.document or {}
        doc = {name: made.get(name, value) for name, value in self.body["doc"].items()}
        # What the pipeline adds to documents, such as their language.
        top = field.partition(".")[0]
        doc |= {name: made[name] for name in made.keys() - found.source.keys() - {"_id", top}}
        new = new_fingerprint(outcome, field) or {}
        if new == stored_fingerprint(found.source, field):
            return {**kept, "doc": doc}
        action = update_action({"_index": "", "_id": self.id, "_source": found.source}, field, new)
        if "doc" not in action:
            warn(
                f"the fingerprint of {self.id!r} in {self.index.name!r} has dotted keys, which no partial "
                "update replaces, so it is that of the text before. Run "
                f"`shinglefold backfill {self.index.name}`"
            )
            return {**kept, "doc": doc}
        return {**kept, "doc": _merge(doc, action["doc"])}


def _merge(document: Mapping[str, Any], changes: Mapping[str, Any]) -> JSON:
    """Return a document with a partial one merged into it as engines do: value by value in objects."""
    merged = dict(document)
    for name, value in changes.items():
        old = merged.get(name)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[name] = _merge(old, value) if both and isinstance(old, Mapping) else value
    return merged
