import sys
from importlib.metadata import EntryPoint

import pytest

from shinglefold import registry
from shinglefold.errors import ConfigError, MissingExtra, SchemeMismatch, UnknownLanguage
from shinglefold.model.scheme import CanonOptions, LanguageRef


def test_the_built_in_languages_are_found():
    assert {"any", "en", "ru", "uk", "zh"} <= set(registry.installed())


def test_languages_of_a_scheme_are_sorted_whatever_order_they_are_named_in():
    assert registry.references(["ru", "any"]) == registry.references(["any", "ru"])


@pytest.mark.parametrize(
    ("code", "meant"),
    [("ukr", "uk"), ("ua", "uk"), ("uk-UA", "uk"), ("cn", "zh"), ("zh_TW", "zh"), ("GB", "en")],
)
def test_an_unknown_language_names_the_one_that_is_meant(code, meant):
    with pytest.raises(UnknownLanguage, match=f"did you mean '{meant}'"):
        registry.make_scheme(codes=[code, "any"])


def test_options_for_a_language_outside_the_scheme_are_refused():
    with pytest.raises(UnknownLanguage, match="'zh'"):
        registry.references(["ru", "any"], overrides={"zh": CanonOptions()})


def test_a_scheme_made_with_another_dictionary_is_refused():
    with pytest.raises(SchemeMismatch, match="ru 0-ancient") as caught:
        registry.load_languages([LanguageRef("ru", "0-ancient")])
    assert "index again" in str(caught.value)


def test_two_plugins_of_one_code_are_refused(monkeypatch):
    both = [EntryPoint("xx", "a:A", registry.LANGUAGES), EntryPoint("xx", "b:B", registry.LANGUAGES)]
    monkeypatch.setattr(registry, "entry_points_of", lambda group: both)
    with pytest.raises(ConfigError, match="two plugins claim the language 'xx': a:A and b:B"):
        registry.installed()


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("no.such.module:X", "can't be imported"),
        ("pathlib:Path", "no subclass"),
        ("json:dumps", "no subclass"),
    ],
)
def test_a_broken_plugin_is_named(monkeypatch, target, says):
    monkeypatch.setattr(registry, "entry_points_of", lambda group: [EntryPoint("xx", target, group)])
    with pytest.raises(ConfigError, match=says) as caught:
        registry.language_class("xx")
    assert target in str(caught.value)


@pytest.mark.parametrize(("code", "module"), [("ru", "pymorphy3"), ("uk", "pymorphy3"), ("zh", "opencc")])
def test_a_missing_extra_names_the_pip_command(monkeypatch, code, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'shinglefold\[{code}\]'"):
        registry.load_languages(registry.references([code]))


def test_a_language_without_its_dictionary_is_left_out_unless_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymorphy3", None)
    assert {ref.code for ref in registry.references()} >= {"any", "en", "zh"}
    assert not {ref.code for ref in registry.references()} & {"ru", "uk"}
    assert "shinglefold[uk]" in str(registry.usable()[1]["uk"])
    with pytest.raises(MissingExtra):
        registry.references(["ru", "any"])


def test_a_plugin_installed_while_a_process_runs_is_found_and_one_taken_away_is_not(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path)
    assert "later" not in registry.installed()
    info = tmp_path / "later-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: later\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[shinglefold.languages]\nlater = somewhere:Later\n")
    assert registry.installed()["later"].value == "somewhere:Later"
    info.rename(tmp_path / "gone")
    assert "later" not in registry.installed()


def test_files_of_distributions_are_read_once_while_nothing_is_installed(monkeypatch):
    registry.installed()
    looked = []
    monkeypatch.setattr(registry, "entry_points", lambda **group: looked.append(group))
    registry.installed()
    assert not looked
