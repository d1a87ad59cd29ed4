"""Every built-in language passes the kit that strangers run, in each of its modes."""

import pytest

from shinglefold.errors import UnknownLanguage
from shinglefold.model.scheme import CanonOptions
from shinglefold.registry import language_class
from shinglefold.testing.languages.conformance import CHECKS, LanguageConformance, check_language


class TestRussianLemmas(LanguageConformance):
    code = "ru"


@pytest.mark.long
class TestRussianStems(LanguageConformance):
    code = "ru"
    options = CanonOptions("stem", drop_function_words=True)


@pytest.mark.long
class TestRussianWords(LanguageConformance):
    code = "ru"
    options = CanonOptions("surface", drop_function_words=True, drop_adjectives=True)


class TestUkrainianLemmas(LanguageConformance):
    code = "uk"


@pytest.mark.long
class TestUkrainianWords(LanguageConformance):
    code = "uk"
    options = CanonOptions("surface", drop_function_words=True, drop_adjectives=True)


class TestChinese(LanguageConformance):
    code = "zh"


class TestEnglishStems(LanguageConformance):
    code = "en"


@pytest.mark.long
class TestEnglishWords(LanguageConformance):
    code = "en"
    options = CanonOptions("surface", drop_function_words=True)


class TestAny(LanguageConformance):
    code = "any"


def test_one_call_reports_the_version_and_the_rate():
    report = check_language("any")
    assert report.version == language_class("any").version()
    assert set(report.passed) == set(CHECKS)
    assert report.words_per_second >= 1000


def test_the_class_runs_every_check_of_the_call():
    methods = {name.removeprefix("test_") for name in vars(LanguageConformance) if name.startswith("test_")}
    assert methods == set(CHECKS)


def test_a_code_nobody_has_is_named_with_the_nearest_one():
    with pytest.raises(UnknownLanguage, match="did you mean 'any'"):
        check_language("ane")
