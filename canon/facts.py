"""The facts of a text that copies must have in common: numbers with their units, sizes and single letters."""

import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import xxhash

from shinglefold.canon.segmentation import Cuttable
from shinglefold.canon.unicode_tables import fold_case, homoglyph_map, rows
from shinglefold.canon.written_numbers import (
    HAN,
    LETTER,
    MAKES,
    NEAR,
    POINTS,
    SPACE,
    in_digits,
    join_spellings,
    large_sizes,
    number_value,
    plain_text,
    scale_value,
    strip_trailing_zeros,
    words_as_digits,
)

#: A match starts at the first letter, so long runs of letters take no time. v1.2 and USB3.0 are versions.
#: Words are not part of a model (iPhone14 is iPhone 14). Consonants before a space are (RTX 4090), but not
#: sizes, and not before years and lists.
_VOWELS, _CONSONANTS = "[aeiouyаеиоуыэюяіїє]", "[bcdfghjklmnpqrstvwxz]{2,5}"
_MODEL = (
    rf"(?P<model>(?<!{NEAR})(?!v\d+\.\d|ph\d|{LETTER}++\d\.\d(?!\d))"
    rf"(?!(?={LETTER}*{_VOWELS}){LETTER}{{4,}}-?\d+(?!\d|{LETTER}|\+)){LETTER}++-?\d+(?:{LETTER}++|\++(?!\d))?"
    rf"|(?<!{NEAR})(?<!['’])(?!x*[sml] |ph )(?:{_CONSONANTS} |(?:[a-z]|{MAKES}){SPACE})"
    rf"(?!(?:19\d|20[0-3])\d(?!\d))\d++"
    rf"(?![.,:/×–-]?\d| \d{{3}})(?:{LETTER}{{1,2}})?(?!{NEAR}))"
)
#: Groups of three digits belong together, whatever separates them; several points or commas make a date or
#: a list, one makes a fraction.
_NUMBER = (
    r"(?P<than>[<>≤≥±]=?\s*)?(?P<money>[$€£₽₴¥]\s?)?"
    r"(?P<number>(?!0)\d{1,3}(?:[ ,.'’_]\d{3})+(?!\d)(?:[.,]\d{1,2}(?![\d.,]))?"
    r"|\d+(?:[.,]\d+){2,}|\d+(?:[.,]\d+)?)(?P<more>\+(?!\+|\s?\d))?"
)
#: Separators between the letters and the digits of a model.
_PARTED = str.maketrans("", "", f"- {SPACE}")
_SPACED = re.compile(r"\s")
_BY = re.compile(r"(\d)\s*[xх×*]\s*(?=\d)")
_DIGITS = re.compile(r"\d+")
#: The beginning of a model's unit: models with the same letters have an order, as numbers have.
_MODELS = "model:"
#: A prefix that belongs to the digits after it, reversed, and the most characters before them to search.
_LEAD, _REACH = (
    re.compile(
        rf"[-{SPACE}]?{LETTER}++| {_CONSONANTS}(?!{LETTER})|(?:\s?[$€£₽₴¥])?\s*+=?[<>≤≥±]|\s?[$€£₽₴¥]"
    ),
    24,
)

#: Signs that compare the words beside them; before a number, signs of size belong to it. A lone ``>`` is not
#: one, because paths of pages have it (Home > Shoes); a text with ``<`` differs from one with ``>`` anyway.
_RELATION = re.compile(
    r"(?<![<>=!–—-])(?:(?:[<>]=|[≤≥]|<(?=\s)|(?<=\w)<(?=\w)(?![^<>\n]{0,60}>))(?!\s*(?:[$€₽₴¥]\s?)?\d)|!=|≠)(?!=)"
)
_COMPARING = re.compile("[<>≤≥≠!]")
_SPELLED_OUT = str.maketrans({"≥": ">=", "≤": "<=", "≠": "!="})
#: The possible ends of a sentence; the next letter decides.
_END = re.compile(r"[。！？；]|[.!?…][\"»”’')\]]*+\s++|\n\s*+")
#: Abbreviations that precede a name.
_SHORTENED = re.compile(
    r"(?<!\w)(?:проф|акад|ул|вул|просп|пер|пл|им|ім|св|обл|mr|mrs|ms|dr|prof)$", re.IGNORECASE
)
#: Numbers before ``г.`` and ``р.`` that are years, by the unit or its spelling.
_YEARS = {
    "g": re.compile(r"(?:.*[.,])?(?:19|20)\d\d"),
    "y": re.compile(r"(?:.*[.,])?(?:1\d|20)\d\d"),
    "р": re.compile(r"(?:.*[.,])?(?:19|20)\d\d"),
}
#: Decimals that are not versions, and words before those that are.
_FRACTION = re.compile(r"0\.\d+|[\d ]+\.[5-9]0+")
_VERSION = re.compile(r"(?:\bv|\bver\.?|верс\w*\.?|version|release|版本?)\s?$")
_ORDINAL = ("st", "nd", "rd", "th")
_MINUS, _BEFORE_MINUS = "-−–", re.compile(r"(?:^|[\s(\[:=≈~±<>,;]|\.\.)$")
#: Between numbers that share the unit of the last: 8/128 ГБ, 10–14 ч, 10 до 14 ч.
_SHARED = re.compile(rf"[\s,/×+−–—~-]{{0,4}}(?:{LETTER}{{1,3}}|\.{{3}}|[至到])?[\s/×+−–—-]{{0,4}}")
_SIZE = re.compile(
    rf"(?<!{NEAR})(?<!°)((?:[2-9]?X{{0,5}}[SML])|x{{1,5}}[sl]|A{{2,4}}|Rh|[A-Z])([+#]+|[−–-](?!\w))?(?!{NEAR})"
)
#: Letters that are a unit or a time after a number.
_MEASURES = "LWVAXKPN"
#: Cyrillic capitals that people type for sizes; others that look Latin are words of their own.
_TYPED = str.maketrans("МХ", "MX")
#: Cyrillic letters that name something (витамин С), not words of titles.
_NAMING = re.compile(r"(?<=[а-яёіїєґ] )[АВЕКС](?![^\W_])(?!\s+[A-ZА-ЯЁІЇЄҐ])|(?<!\w)[АВС](?=[+#])")
_AS_LATIN = str.maketrans("АВЕКС", "ABEKC")
#: After a number, words that distinguish models: iPhone 15 Pro Max, RTX 4090 Ti.
_VARIANT = r"pro|max|plus|ultra|mini|lite|super|ti|se|fe"
_VARIANTS = re.compile(rf"(?:[ -]?(?:{_VARIANT}|promax)(?!{NEAR}))+")
_WITH_VARIANT = re.compile(rf"(.*\d)({_VARIANT})")
_BEHIND_NUMBER = re.compile(rf"(?<=\d){_VARIANTS.pattern}", re.IGNORECASE)
#: English words of one letter.
_WORDS = "AI"
_WORD = re.compile(rf"{LETTER}++")
#: After these a capital begins a value, not a name.
_BEGINS = ":•·|/–—"
_MODEL_NEXT = re.compile(rf"\s{LETTER}{{1,9}}-?\d")
_CHINESE = re.compile(f"[{HAN}]")
_PLACE = re.compile(rf"[{HAN}]{{2}}(?=[路街区區县縣市镇鎮村])")
#: The shortest name, and the letters of one that count: the others may be an ending.
_SHORTEST, _STEM = 3, 5
_SCALE = (
    r"(?P<scale>(?:тыс|тис|млн|млрд|трлн|mln|bn)(?!\w)\.?|百万|千万|千(?![克米瓦])|[万亿]"
    r"|(?:тысяч|тисяч|миллион|миллиард|мільйон|мільярд|thousand|million|billion|trillion)[^\W\d]*)"
)
_POINT = re.compile(POINTS)
_BROKEN = re.compile(rf"(?<={LETTER})-\n\s*(?={LETTER})")
#: Spaces that do not separate two numbers.
_BLANK = re.compile(r"(?<!\d) | (?!\d)")


class _Found(NamedTuple):
    """A number: its value in normal form, its unit, and its position."""

    value: str
    unit: str
    start: int
    end: int


def facts_of(
    texts: Iterable[Cuttable], classes: Sequence[str], stated: Iterable[Sequence[str]] = ()
) -> list[str]:
    """Return for each text a hash of its facts, 11 characters; those of copies are equal.

    The order of numbers within a sentence counts, the order of sentences does not.

    Args:
        classes: those of ``WordClass`` that count.
        stated: for each text further facts, in a fixed order, such as the values of fields.

    Cost: about 0.4 ms for 1,000 characters with many numbers, 1 ms with letters and names.
    """
    further = iter(stated)
    return [
        _hash([*_normal_form(str(text), classes), *map(_normal_value, next(further, ()))]) for text in texts
    ]


def fact_set(text: str, classes: Sequence[str] = ("numbers",)) -> frozenset[str]:
    """Return the facts of a text in their normal form."""
    return frozenset(_normal_form(text, classes))


class Numbers(NamedTuple):
    """The numbers of a text one by one, each after its unit, and the models."""

    single: set[tuple[str, str]]
    models: set[str]


def single_numbers(text: str) -> Numbers:
    """Return the numbers and models of a text. Cost: about 1 ms for 1,000 characters with many numbers."""
    models = set[str]()
    small = fold_case(_BY.sub(r"\1×", in_digits(plain_text(text))))
    found, single = _with_shared_units(small, list(_iter_numbers(small, models))), set[tuple[str, str]]()
    for one in found:
        (models.add(one.value) if one.unit.startswith(_MODELS) else single.add((one.unit, one.value)))
    return Numbers(single, models)


def _normal_form(text: str, classes: Sequence[str]) -> list[str]:
    plain = plain_text(text)
    found, words, said = set[str](), set[str](), ""
    if "numbers" in classes or "letters" in classes:
        said, words = words_as_digits(join_spellings(plain))
    if "numbers" in classes:
        found = _numbers(said) | {one for one in words if one[0] == "w"}
    if "letters" in classes:
        found |= _letters(plain) | {one for one in words if one[0] == "l"}
    if "names" in classes:
        found |= _names(plain)
    # The letter of a model is part of the model, not a fact of its own: X 5 is X5.
    return sorted(
        found.difference(f"l:{one[6].upper()}" for one in found if one[:6] == _MODELS and one[7] == ":")
    )


def _numbers(plain: str) -> set[str]:
    """Return models, and the numbers of each sentence that have one unit, in their order."""
    plain = _BY.sub(r"\1×", in_digits(plain))
    small = fold_case(plain)
    found = _relations(plain)
    sentence: list[_Found] = []
    for one in _iter_numbers(small, found):
        if sentence and _is_end_between(plain, sentence[-1].end, one.start):
            found |= _runs(small, sentence)
            sentence = []
        sentence.append(one)
    return found | _runs(small, sentence)


def _relations(plain: str) -> set[str]:
    """Return the signs of each sentence that compare words, in their order."""
    if not _COMPARING.search(plain) or not _RELATION.search(plain):
        return set()
    signs = (" ".join(_RELATION.findall(one)).translate(_SPELLED_OUT) for one in _sentences(plain))
    return {f"c:{one}" for one in signs if one}


def _runs(small: str, sentence: list[_Found]) -> set[str]:
    runs: dict[str, list[str]] = {}
    for one in _with_shared_units(small, sentence):
        runs.setdefault(one.unit, []).append(one.value)
    return {f"{unit}:{' '.join(run)}" for unit, run in runs.items()}


def _is_end_between(plain: str, begin: int, end: int) -> bool:
    return any(_is_end(plain, match) for match in _END.finditer(plain, begin, end))


def _is_end(plain: str, match: re.Match[str]) -> bool:
    """Return whether a sentence ends here: the next letter decides, or a blank line."""
    if match[0][0] == "." and _SHORTENED.search(plain[max(0, match.start() - 6) : match.start()]):
        return False
    following = plain[match.end() : match.end() + 8].lstrip("\"«“‘'([-—– ")[:1]
    return match[0][0] in "。！？；" or not following or following.isupper() or match[0].count("\n") > 1


def _sentences(plain: str) -> Iterator[str]:
    begin = 0
    for match in _END.finditer(plain):
        if _is_end(plain, match):
            yield plain[begin : match.start()]
            begin = match.end()
    yield plain[begin:]


def _iter_numbers(small: str, models: set[str]) -> Iterator[_Found]:
    """Yield the numbers of a text, and add its models."""
    at, pattern = 0, _pattern()
    for digits in _DIGITS.finditer(small):
        begin = digits.start()
        if begin < at:
            continue
        # Only the parts near digits are searched: most of a text has none.
        lead = _LEAD.match(small[max(at, begin - _REACH) : begin][::-1])
        match = lead and pattern.match(small, begin - lead.end())
        alone = None if match and not _SPACED.search(match["model"] or "") else pattern.match(small, begin)
        # A number with a unit is not a model: SSD 512 GB, or mm 20 in a table.
        measured_by = match and alone and match[0].partition(" ")[0] in _unit_spellings()[0]
        match = alone if alone and (alone["unit"] or alone["scale"] or measured_by) else match or alone
        if match is None:
            continue
        at = match.end()
        if match.lastgroup == "model":
            model = match["model"]
            if parts := _WITH_VARIANT.fullmatch(model):
                model = parts[1]
                models.add(f"v:{parts[2]}")
            models |= _variants(small, at)
            model = model.translate(_latin()).translate(_PARTED)
            yield _Found(model, _MODELS + _DIGITS.split(model, 1)[0], match.start(), at)
            continue
        models |= _variants(small, at)
        value, unit, signs, start = number_value(match["number"]), "", "", match.start()
        # Most numbers have nothing beside them.
        if match.lastgroup != "number" or match.start("number") > start:
            value, unit = _with_unit(match, value)
            signs = (match["than"] or "").strip().translate(_SPELLED_OUT) or (">=" if match["more"] else "")
            start = match.end("than") if match["than"] else start
        if "." in value and _is_fraction(value, small[max(0, begin - 9) : begin]):
            value = strip_trailing_zeros(value)
        if start and small[start - 1] in _MINUS and _is_sign(small[max(0, start - 9) : start - 1]):
            signs += "-"
        yield _Found(signs + value, unit, match.start(), at)


def _variants(small: str, at: int) -> set[str]:
    """Return the words for variants of a model that follow a number."""
    match = _VARIANTS.match(small, at)
    return {f"v:{one}" for one in re.findall(_VARIANT, match[0])} if match else set()


def _is_fraction(value: str, before: str) -> bool:
    """Return whether a decimal without a unit is a number; versions and sections rarely reach .50."""
    return bool(_FRACTION.fullmatch(value)) and not _VERSION.search(before)


def _with_unit(match: re.Match[str], value: str) -> tuple[str, str]:
    """Return the value of a number by its scale and unit, and its unit."""
    unit = _unit(match)
    if match["scale"]:
        value = scale_value(value, match["scale"])
    if match["unit"] or match["money"]:
        value = strip_trailing_zeros(value)
    years = unit and (_YEARS.get(unit) or _YEARS.get(match["unit"] or ""))
    return value, "" if years and years.fullmatch(match["number"]) else unit


def _is_sign(before: str) -> bool:
    """Return whether a dash after these characters is a minus: not between numbers, nor after a word."""
    return bool(_BEFORE_MINUS.search(before)) and not before.rstrip()[-1:].isdigit()


def _with_shared_units(sentence: str, numbers: list[_Found]) -> Iterator[_Found]:
    shared: list[_Found] = []
    for one in reversed(numbers):
        after = shared[-1] if shared else one
        joined = (
            not one.unit
            and after.unit
            and not after.unit.startswith(_MODELS)
            and _SHARED.fullmatch(sentence[one.end : after.start])
        )
        shared.append(one._replace(unit=after.unit, value=strip_trailing_zeros(one.value)) if joined else one)
    return reversed(shared)


def _unit(match: re.Match[str]) -> str:
    """Return the unit of a number in its normal form, "" without one."""
    if money := (match["money"] or "").strip():
        return _unit_spellings()[0].get(money, "")
    if match["unit"] is None:
        suffix = match["suffix"]
        return suffix.translate(_latin()) if suffix and suffix not in _ORDINAL else ""
    unit = _normal_unit(match["unit"])
    power = match["power"] or {"к": "2", "s": "2", "平": "2", "п": "2"}.get((match["square"] or "")[:1], "")
    if (match["square"] or "").startswith(("куб", "cu", "立")):
        power = "3"
    if per := match["per"]:
        power += f"/{_normal_unit('сек' if per == 'с' else per)}"
    return unit + power


@lru_cache(maxsize=1024)
def _normal_unit(word: str) -> str:
    exact, stems = _unit_spellings()
    word = word if word in exact else _POINT.sub("·", word)
    return exact.get(word) or next((to for stem, to in stems.items() if word.startswith(stem)), word)


@cache
def _unit_spellings() -> tuple[dict[str, str], dict[str, str]]:
    """Return the normal forms of units by their spellings, and by the beginnings of words."""
    pairs = [(spelling, unit) for unit, *spellings in rows("units.txt") for spelling in spellings]
    exact = {spelling: unit for spelling, unit in pairs if not spelling.endswith("*")}
    exact |= {spelling.replace("·", ""): unit for spelling, unit in exact.items()}
    stems = {spelling[:-1]: unit for spelling, unit in pairs if spelling.endswith("*")}
    return exact, dict(sorted(stems.items(), key=lambda row: -len(row[0])))


@cache
def _pattern() -> re.Pattern[str]:
    exact, stems = _unit_spellings()
    words = sorted([one for one in exact if one[0].isalpha() and not _is_han(one)], key=len, reverse=True)
    others = sorted([one for one in exact if not one[0].isalpha() or _is_han(one)], key=len, reverse=True)
    letters, begun, signs = map(_either, (words, sorted(stems, key=len, reverse=True), others))
    # Reluctant: квт is kilowatts, not кв т.
    square = (
        r"(?P<square>(?:кв|куб|sq|cu)\.?\s*"
        r"|(?:квадратн|кубическ|кубічн|square|cubic)[^\W\d_]*+\s++|平方|立方|平)??"
    )
    unit = rf"(?P<unit>(?:{letters})(?=\^?[23](?!\d))|(?:{letters})(?!{LETTER}|-р)|(?:{begun})\w*|{signs})"
    per = rf"(?:\.?\s?/\s?(?P<per>{letters}|с)(?!{LETTER}))?"
    # A number after a Chinese unit is a new one: 2026年3月.
    power = rf"(?:(?:\^|(?<![{HAN}]))(?P<power>[23])(?!\d))?"
    # Cyrillic letters that people type for A and K.
    suffix = rf"(?:-(?=к|d(?!{LETTER})))?(?P<suffix>[a-z]{{1,2}}|[ак])(?!{NEAR})"
    measured = rf"(?:(?!-[мг](?!{LETTER}))\s?-?\s?{square}{unit}{power}{per}|{suffix})?"
    return re.compile(rf"{_MODEL}|{_NUMBER}(?:\s?{_SCALE})?{measured}")


def _either(spellings: Iterable[str]) -> str:
    """Return a pattern for any of the spellings, the first that fits; ``·`` is any point.

    They are grouped by first letter, because most of a text is compared with these letters only.
    """
    rest: dict[str, list[str]] = {}
    for one in spellings:
        rest.setdefault(re.escape(one[0]), []).append(re.escape(one[1:]).replace("·", POINTS))
    return "|".join(f"{first}(?:{'|'.join(ends)})" for first, ends in rest.items())


def _is_han(text: str) -> bool:
    return "\u3400" <= text[0] <= "\u9fff"


def _letters(plain: str) -> set[str]:
    """Return the sizes and single capitals of a text."""
    found = set()
    plain = _NAMING.sub(lambda match: match[0].translate(_AS_LATIN), plain)
    for match in _SIZE.finditer(plain.translate(_TYPED)):
        letters, sign = large_sizes(match[1]), (match[2] or "").replace("−", "-").replace("–", "-")
        letters = letters.upper() if letters[0] == "x" else letters
        before = plain[max(0, match.start() - 2) : match.start()]
        if letters in _MEASURES and not sign and before.strip().isdigit():
            continue
        if sign or letters not in _WORDS or plain.endswith("-", 0, match.start()):
            found.add(f"l:{letters}{sign}")
    return found


def _names(plain: str) -> set[str]:
    """Return the beginnings of capitalized words that do not begin a sentence, and the names of places."""
    found = {f"n:{match[0]}" for match in _PLACE.finditer(plain)}
    for sentence in _sentences(_BROKEN.sub("", _BEHIND_NUMBER.sub("", plain))):
        for number, match in enumerate(_WORD.finditer(sentence)):
            word = match[0]
            if not number and not _CHINESE.search(sentence, 0, match.start()):
                continue  # The word begins the sentence.
            begins = sentence[max(0, match.start() - 3) : match.start()].rstrip()[-1:]
            named = len(word) >= _SHORTEST and word[0].isupper() and word[1:].islower()
            # A name before its model may begin the sentence in a copy; the model is a fact of its own.
            named = named and not _MODEL_NEXT.match(sentence, match.end())
            if named and not (begins and begins in _BEGINS):
                found.add(f"n:{_alike(word)[:_STEM]}")
    return found


def _normal_value(value: str) -> str:
    """Return the value of a field in its normal form: case, width and spaces do not matter."""
    words = " ".join(plain_text(value).split())
    return f"f:{_BLANK.sub('', _alike(words))}"


def _alike(text: str) -> str:
    """Return a text without case, in which letters that look alike are one."""
    return text.casefold().replace("ё", "е").translate(_latin())


@cache
def _latin() -> dict[int, str]:
    return str.maketrans(dict(homoglyph_map()["Latn"]))


def _hash(facts: Sequence[str]) -> str:
    hashed = xxhash.xxh3_64_digest("\0".join(facts).encode("utf-8", "surrogatepass"))
    return urlsafe_b64encode(hashed).decode("ascii").rstrip("=")
