"""Languages that each break one promise, for the test that the kit finds it."""

import os
import time
from contextlib import suppress
from types import MappingProxyType

from shinglefold.contracts.language import Language
from shinglefold.model.values import Sample


class _Sound(Language):
    scripts = frozenset({"Latn"})
    samples = (Sample("Green apples", "green, APPLES!", True), Sample("Green apples", "old iron", False))

    def canonical(self, word):
        return word


class Sound(_Sound):
    code = "sound"


class WrongCode(_Sound):
    code = "other"


class UpperCaseMarks(_Sound):
    code = "uppercasemarks"
    marks = "ÄÖ"


class NoVersion(_Sound):
    code = "noversion"

    @classmethod
    def version(cls):
        return ""


class OneSidedSamples(_Sound):
    code = "onesidedsamples"
    samples = (Sample("green", "green", True),)


class UnsettledFold(_Sound):
    code = "unsettledfold"
    fold = MappingProxyType({ord("a"): "e", ord("e"): "i"})


class Raising(_Sound):
    code = "raising"

    def canonical(self, word):
        return word.encode("utf-8").decode("utf-8")


class Empty(_Sound):
    code = "empty"

    def canonical(self, word):
        return word.strip("0123456789-_.,")


class Quadratic(_Sound):
    code = "quadratic"

    def canonical(self, word):
        for start in (*range(len(word)), *range(len(word))):
            word[start:].split("~")
        return word


class Counting(_Sound):
    code = "counting"
    calls = 0

    def canonical(self, word):
        self.calls += 1
        return f"{word}{self.calls}"


class Growing(_Sound):
    code = "growing"

    def canonical(self, word):
        return word + "s"


class Dropping(_Sound):
    code = "dropping"

    def canonical(self, word):
        return None if len(word) < 5 else word


class Merging(_Sound):
    code = "merging"

    def canonical(self, word):
        return "x" if word.isalpha() else word


class Parting(_Sound):
    code = "parting"
    samples = (Sample("green apples", "green apple", True), Sample("green", "old", False))


class Unevenly(_Sound):
    code = "unevenly"
    samples = (Sample("green apples", "green apple", True), Sample("green", "old", False))

    def canonical(self, word):
        return None if self.options.drop_function_words and word == "apple" else word.removesuffix("s")


class OnlyDropping(_Sound):
    code = "onlydropping"
    samples = (Sample("the apples", "apples", True), Sample("green", "old", False))

    def canonical(self, word):
        return None if self.options.drop_function_words and word == "the" else word


class Racing(_Sound):
    code = "racing"

    def canonical(self, word):
        self.word = word
        time.sleep(1e-5)
        return self.word


class HashSeeded(_Sound):
    code = "hashseeded"

    def canonical(self, word):
        return f"{word}{hash(word) % 7}"


class ProcessBound(_Sound):
    code = "processbound"

    def __init__(self, options):
        super().__init__(options)
        self.process = os.getpid()

    def canonical(self, word):
        return word if os.getpid() == self.process else word + "!"


class Fetching(_Sound):
    code = "fetching"

    def canonical(self, word):
        import socket

        with suppress(OSError):
            socket.create_connection(("127.0.0.1", 9), 0.01).close()
        return word


class Hoarding(_Sound):
    code = "hoarding"

    def __init__(self, options):
        super().__init__(options)
        self.seen = {}

    def canonical(self, word):
        return self.seen.setdefault(word, word)


class Slow(_Sound):
    code = "slow"

    def canonical(self, word):
        until = time.thread_time() + 0.0015
        while time.thread_time() < until and len(word) < 30:
            pass
        return word
