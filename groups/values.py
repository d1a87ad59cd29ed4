"""Values of scopes: the same whether a document tells them as it was given, or the index as it keeps them.

What is being decided on is in no index yet, so that values are compared here. That is possible for kinds of
fields whose values the index keeps as they are, or in a form that can be told beforehand.
"""

from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any

from shinglefold.contracts import JSON, Engine
from shinglefold.errors import ConfigError, InputError

Form = Callable[[Any], Any]
#: Bytes of a term at most, in any index.
_LONGEST = 32_766


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _whole(value: Any) -> int:  # noqa: ANN401 - JSON
    return value if isinstance(value, int) else int(float(value)) if "." in str(value) else int(value)


def _truth(value: object) -> str:
    return {"true": "true", "false": "false", "": "false"}[_word(value)]


def _address(value: object) -> str:
    address = ip_address(str(value))
    return str(getattr(address, "ipv4_mapped", None) or address)


_FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "keyword": _word,
        **dict.fromkeys(("byte", "short", "integer", "long", "unsigned_long"), _whole),
        "boolean": _truth,
        "ip": _address,
    }
)


class Values:
    """Brings the values of fields into the one form in which they can be compared.

    Args:
        fields: the mappings of the fields, by their paths.
        strict: whether a value that the index can't have is an error; else it is none.
    """

    def __init__(self, fields: Mapping[str, JSON], *, strict: bool = True) -> None:
        self._strict = strict
        self._forms = {path: _FORMS[node["type"]] for path, node in fields.items()}
        self._longest = {path: node.get("ignore_above", _LONGEST) for path, node in fields.items()}

    @classmethod
    def of(cls, mappings: JSON, paths: Sequence[str], index: str) -> "Values":
        """Return what compares the values of some fields of an index.

        Raises:
            ConfigError: a field is not mapped, or of a kind whose values can't be told beforehand.
        """
        return cls({path: _mapped(mappings, path, index) for path in paths})

    @classmethod
    def of_all(cls, engine: Engine, index: str, paths: Sequence[str]) -> "Values":
        """Return what compares the values of some fields of all indices behind a name; no value is an error.

        Raises:
            ConfigError: as ``of``; or a field is of one kind here and of another there.
        """
        fields: dict[str, JSON] = {}
        for name, mappings in sorted(engine.all_mappings(index).items()) if paths else ():
            for path in paths:
                node = _mapped(mappings, path, name)
                known = fields.setdefault(path, node)
                if known["type"] != node["type"]:
                    raise ConfigError(
                        f"{index!r}: the scope {path!r} is of type {known['type']} in one index and of type "
                        f"{node['type']} in {name!r}; name one of them, or a field that is alike in all"
                    )
        return cls(fields, strict=False)

    def given(self, path: str, values: Sequence[Any]) -> list[Any]:
        """Return the values of a document that is not stored yet.

        Raises:
            InputError: the index would not take one of them, or not keep it.
        """
        if not self._strict:
            return self.kept(path, values)
        made: list[Any] = []
        for value in values:
            try:
                made.append(self._forms[path](value))
            except (ValueError, TypeError, KeyError, OverflowError) as error:
                raise InputError(f"its scope {path!r} has a value that the field can't have") from error
            if isinstance(made[-1], str) and len(made[-1]) > self._longest[path]:
                raise InputError(
                    f"its scope {path!r} has {len(made[-1]):,} characters, and the index keeps values of "
                    f"{self._longest[path]:,} at most"
                )
        return sorted(set(made))

    def kept(self, path: str, values: Sequence[Any]) -> list[Any]:
        """Return the values that the index has of a stored document; none where they are of another kind."""
        try:
            made = {self._forms[path](value) for value in values}
        except (ValueError, TypeError, KeyError, OverflowError):
            return []
        longest = self._longest[path]
        return sorted(one for one in made if not isinstance(one, str) or len(one) <= longest)


def _mapped(mappings: JSON, path: str, index: str) -> JSON:
    node: Any = mappings
    for name in path.split("."):
        node = (node.get("properties") or {}).get(name) if isinstance(node, Mapping) else None
    kind = node.get("type") if isinstance(node, Mapping) else None
    if kind not in _FORMS or node.get("normalizer"):
        told = "not mapped" if kind is None else f"of type {kind}"
        if isinstance(node, Mapping) and node.get("normalizer"):
            told = "a keyword with a normalizer"
        raise ConfigError(
            f"index {index!r}: the scope {path!r} is {told}; name a keyword without a normalizer, a whole "
            "number, a boolean or an ip, whose values can be compared before a document is stored"
        )
    mapped = dict(node)
    if not mapped.get("doc_values", True) or not mapped.get("index", True):
        raise ConfigError(f"index {index!r}: the scope {path!r} has no doc values or is not indexed")
    return mapped
