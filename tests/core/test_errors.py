import inspect
import pickle
import re

import pytest

from shinglefold import errors
from shinglefold.errors import MissingExtra, RecipeMismatch, Refused, SchemeMismatch, ShinglefoldError

CLASSES = {
    name: cls
    for name, cls in vars(errors).items()
    if inspect.isclass(cls) and cls.__module__ == errors.__name__
}


def test_the_drawn_tree_is_the_tree():
    drawn: list[tuple[str, str]] = []
    above: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        if (found := re.match(r"([ │├└─]*)([A-Z]\w+)(?:\s{2,}|$)", line)) and found[2] in CLASSES:
            depth = len(found[1])
            above = [(d, n) for d, n in above if d < depth]
            drawn.append((found[2], above[-1][1] if above else "Exception"))
            above.append((depth, found[2]))
    assert dict(drawn) == {name: cls.__base__.__name__ for name, cls in CLASSES.items()}


def test_every_error_has_one_root():
    assert all(issubclass(cls, ShinglefoldError) for cls in CLASSES.values())


@pytest.mark.parametrize(
    "error",
    [
        MissingExtra("ru", "Russian"),
        SchemeMismatch("sf1-a", "sf1-b", "the index", "Run it again."),
        RecipeMismatch("the pipeline", "one", "another", "the index", "Run it again."),
        Refused("It resembles another", "7", 0.9, 3),
    ],
)
def test_errors_travel_between_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_an_engine_that_fails_has_lost_nothing_unless_it_says_so(name):
    assert getattr(CLASSES[name], "lost", 0) == 0
