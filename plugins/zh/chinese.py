"""Chinese characters: Traditional to Simplified, a few function characters dropped."""

from shinglefold.contracts.language import Language
from shinglefold.model.scheme import CanonOptions
from shinglefold.model.values import Sample
from shinglefold.plugins.resources import distribution_version, read_words, require
from shinglefold.plugins.zh.table import simplified

_RULES = "1"
_NEEDED = ("zh", "Chinese", "opencc")


class Chinese(Language):
    """Chinese by characters: no segmentation, so nothing depends on a word list's version."""

    code = "zh"
    scripts = frozenset({"Hani"})
    unit = "char"
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
        """Return the character, or None for a function character where they are to be dropped."""
        return None if word in self._dropped else word
