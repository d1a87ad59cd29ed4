"""Chinese: characters, Traditional folded to Simplified."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from shinglefold.contracts.language import Language
from shinglefold.model.scheme import CanonOptions
from shinglefold.model.values import Sample
from shinglefold.plugins.resources import distribution_version, read_lines, read_words, require


@cache
def simplified() -> Mapping[int, str]:
    """Return a map from code points to Simplified characters, about 4,100 entries; no value is a key.

    Regional variants are mapped through the Traditional form. If the choice depends on the word, the first
    candidate is taken; any will do, as long as it is the same for both versions of a text.

    Source: OpenCC's character tables, and ``variants.txt``. Cost: about 3 ms, once a process.
    """
    table = _characters("TSCharacters.txt")
    for name in ("TWVariantsRev.txt", "HKVariantsRev.txt"):
        taken = set(table.values())
        for variant, standard in _characters(name).items():
            if variant not in table and variant not in taken:
                table[variant] = standard
    for line in read_lines("zh", "variants.txt"):
        variant, standard = line.split()
        table[variant] = standard
    closed = {key: _last(table, key) for key in table}
    return MappingProxyType({ord(key): value for key, value in closed.items() if key != value})


def _last(table: Mapping[str, str], character: str) -> str:
    seen = {character}
    while (following := table.get(character, character)) not in seen:
        seen.add(following)
        character = following
    return character


def _characters(name: str) -> dict[str, str]:
    lines = files("opencc").joinpath("dictionary", name).read_text("utf-8").splitlines()
    pairs = (line.split()[:2] for line in lines if line.strip())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and len(pair[0]) == len(pair[1]) == 1}


_RULES = "1"
_NEEDED = ("zh", "Chinese", "opencc")


class Chinese(Language):
    """Chinese by characters: without word segmentation, results do not depend on a word list."""

    code = "zh"
    scripts = frozenset({"Hani"})
    unit = "char"
    values = "二 三 四 五 六 七 八 九 十 百 两 周 月 年"
    negations = "不 没 无 未"
    articles = "有"
    samples = (
        Sample("開放中文轉換", "开放中文转换", True),
        Sample("他說著話，妳聽見了嗎？", "他说着话，你听见了吗", True),
        Sample("這個軟體的著作權", "这个软体著作权", True),
        Sample("臺灣與香港的繁體字", "台湾和香港的繁体字", True),
        Sample("裡面裏面", "里面里面", True),
        Sample("人民币汇率今日上涨", "国家足球队昨晚获胜", False),
        Sample("请安装软件并重新启动计算机", "将洋葱切碎后放入锅中翻炒", False),
    )

    def __init__(self, options: CanonOptions) -> None:
        require(*_NEEDED)
        super().__init__(options)
        self.fold = simplified()
        self._dropped = (
            read_words("zh", "function_characters.txt") if options.drop_function_words else frozenset()
        )

    @classmethod
    def version(cls) -> str:
        """Return the revision of these rules and the version of OpenCC's table."""
        require(*_NEEDED)
        return f"{_RULES}+{distribution_version('zh', 'Chinese', 'opencc-python-reimplemented')}"

    def canonical(self, word: str) -> str | None:
        """Return the character; None for a function character if they are dropped."""
        return None if word in self._dropped else word
