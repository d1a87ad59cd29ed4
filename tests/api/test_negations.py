"""Chunks that differ in a negation are no copies, whatever stands between it and the word it negates."""

import pytest

from shinglefold import fold_chunks

ENGLISH = (
    "She is {} member of the club that meets on the second floor of the library every week, and she has "
    "brought her own books to most of the meetings since the spring of that year."
)
RUSSIAN = (
    "Сервис доступен {} и открыт для пользователей сайта в любое время суток, а данные хранятся на серверах "
    "компании, пока владелец не удалит учётную запись."
)
UKRAINIAN = (
    "Працівник має право на відпустку {}, яку він може поділити на частини, якщо про це домовився зі своїм "
    "керівником і повідомив відділ кадрів."
)
CHINESE = (
    "员工每年享有带薪休假{}需要批准并且可以分段使用,"
    "其余时间由部门安排,具体办法在公司网站上公布,请大家按时查看"
)


def _kept(*texts: str) -> int:
    return len(fold_chunks([{"text": text} for text in texts], len(texts)).chunks)


@pytest.mark.parametrize(
    ("frame", "one", "other"),
    [
        *((ENGLISH, article, f"not {article}") for article in ("a", "an", "the", "any")),
        (ENGLISH, "with a badge a", "without a badge a"),
        (RUSSIAN, "с подпиской", "без подписки"),
        (UKRAINIAN, "з дозволом", "без дозволу"),
        *((CHINESE, "", negation) for negation in ("没有", "未", "不", "无")),
    ],
)
def test_what_one_chunk_negates_keeps_both(frame, one, other):
    assert _kept(frame.format(one), frame.format(other)) == 2
    assert _kept(frame.format(other), frame.format(one)) == 2


def test_an_article_alone_negates_nothing():
    assert _kept(ENGLISH.format("not a"), ENGLISH.format("not the")) == 1
    assert _kept(ENGLISH.format("a"), ENGLISH.format("the")) == 1
