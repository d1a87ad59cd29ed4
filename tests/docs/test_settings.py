"""docs/settings.md: every setting has its row with its default, and the example is a settings file."""

import re
from dataclasses import fields
from pathlib import Path

from shinglefold.canon import Canonicalizer
from shinglefold.settings import Settings, load_settings

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "settings.md").read_text("utf-8")
_ROW = re.compile(r"^\| `(\w+)` \| (.+?) \|", re.MULTILINE)
_NAMED = {"all installed": (), "none": ""}


def test_every_setting_has_a_row_with_its_default():
    rows = dict(_ROW.findall(PAGE))
    defaults = Settings()
    assert list(rows) == [field.name for field in fields(Settings) if field.name not in ("language", "given")]
    for name, told in rows.items():
        value = getattr(defaults, name)
        if told in _NAMED:
            assert value == _NAMED[told]
        else:
            assert told.strip("`") == (str(value).lower() if isinstance(value, bool) else str(value))


def test_the_example_is_a_settings_file(tmp_path):
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    file = tmp_path / "shinglefold.toml"
    file.write_text(example, "utf-8")
    settings = load_settings(file, environ={})
    assert settings.languages == ("ru", "uk", "en")
    assert Canonicalizer.of(settings.scheme()).tokens("мост")
    assert dict(settings.language)["ru"].drop_function_words
