"""What decides in an index: its rules and, where texts do, the fields and dictionaries they are read by."""

from shinglefold.canon import Canonicalizer
from shinglefold.groups.rules import Rules
from shinglefold.groups.scope_values import Values
from shinglefold.groups.similarity import Likeness
from shinglefold.model.recipe import TEXTS, Recipe
from shinglefold.model.scheme import Facts
from shinglefold.model.seal import Seal
from shinglefold.rerank.fold.text_verification import TextStage, TextStages


def text_stage(
    recipe: Recipe,
    rules: Rules,
    canonicalizer: Canonicalizer | None = None,
    *,
    facts: Facts = "any",
    wanted: bool = True,
) -> TextStage:
    """Return what has the texts of an index decide.

    Args:
        canonicalizer: of the index's scheme; None makes one when a text is first read.
        facts: other than ``any`` overrules what the scheme says.
        wanted: whether a missing dictionary is an error; else signatures decide where there is one.
    """
    scheme = rules.judged(recipe.scheme)
    if facts != "any":
        scheme = scheme.with_options(verify="text", facts=facts)
    return TextStages(canonicalizer).stage(scheme, recipe.fields or TEXTS, wanted=wanted)


def likeness_of(
    recipe: Recipe,
    rules: Rules,
    seal: Seal | None,
    values: Values,
    canonicalizer: Canonicalizer | None = None,
    *,
    facts: Facts = "any",
) -> Likeness:
    """Return what tells which documents of an index are alike, by its rules; see ``text_stage``."""
    stage = text_stage(recipe, rules, canonicalizer, facts=facts)
    return Likeness(recipe.scheme, recipe.field, rules, seal, stage, values=values)
