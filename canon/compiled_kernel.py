"""The compiled kernel: words, their languages and canonical tokens of a block, in one pass.

One function without type hints: numba infers the types, and optimizes best within one function.
"""

import numpy as np

from shinglefold.canon.language_detection import CONFUSABLE, MARKS, OWN, RARITY, SCRIPT_BITS
from shinglefold.canon.normalization import DEEPEST_INDENT
from shinglefold.canon.segmentation import AFTER_STAND_IN, BASE, LONGEST_SIGNED, LONGEST_WORD
from shinglefold.canon.unicode_tables import (
    APOSTROPHE,
    COMPOSING,
    HYPHEN,
    INVISIBLE,
    SIGN,
    STAND_IN,
    UNIT,
    WORD,
    characters,
)

_WORD, _UNIT, _APOSTROPHE, _INVISIBLE, _COMPOSING = WORD, UNIT, APOSTROPHE, INVISIBLE, COMPOSING
_STAND_IN, _SIGN, _HYPHEN, _SIGNED = STAND_IN, SIGN, HYPHEN, LONGEST_SIGNED
_RARE = STAND_IN | SIGN | HYPHEN
_LINE_END, _RETURN, _BLANK, _TAB = 10, 13, 32, 9
_OTHER_WORDS = ((ord("0"), ord("Z")), (0x400, 0x42F))
#: In upper and lower case, because the kernel does not fold letters.
_AFTER_STAND_IN = np.flatnonzero(np.isin(characters().fold, AFTER_STAND_IN)).astype(np.uint32)
_SCRIPTS = np.uint32((1 << SCRIPT_BITS) - 1)
_BASE, _LAST = np.uint64(BASE), np.uint64(LONGEST_WORD - 1)
_ONE, _ONE32 = np.uint64(1), np.uint32(1)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_OWN, _MARKS = np.uint32(OWN), np.uint32(MARKS)
_ALIKE = len(CONFUSABLE)
_ALL_ALIKE = np.uint32((1 << _ALIKE) - 1)


def hash_block(codes, origins, declared, tables, routes, slots, known, work, results):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, C901, PLR0912, PLR0915, PLR0917
    """Return the number of words missing from the lexicon, and of tokens; missing ones have hash 0."""
    kinds, traits, values = tables
    group_of, members, salts, rest, lexical = routes
    slot_keys, slot_values, slot_repairs = slots
    known_keys, known_values = known
    starts, ends, chosen, places, keys, hashes, marks, group_at = work
    counts, votes, repairs, unusual = results
    groups, most = members.shape
    last, last_known = np.uint64(len(slot_keys) - 1), np.uint64(len(known_keys) - 1)
    powers = np.empty(LONGEST_WORD, np.uint64)
    powers[0] = _ONE
    for exponent in range(1, LONGEST_WORD):
        powers[exponent] = powers[exponent - 1] * _BASE
    winners = np.empty(groups + 1, np.int64)
    salt_of = np.empty(groups + 1, np.uint64)
    shown = np.empty((groups + 1, most), np.int64)
    inside = np.empty(groups + 1, np.int64)
    lettered = np.empty(groups + 1, np.int64)
    tally = np.empty(most, np.int64)
    kept = missing = base = 0
    end_of_all = len(codes) - 1
    for text in range(len(origins)):
        at = origins[text]
        stop = origins[text + 1] - 1 if text + 1 < len(origins) else end_of_all
        inside[:] = 0
        lettered[:] = 0
        shown[:] = 0
        # 1: find words and single characters, their polynomial hashes and traits.
        tokens = removed = pending = mixed = 0
        odd = readable = False
        while at < stop:
            code = codes[at]
            kind = kinds[code]
            if kind == _INVISIBLE:
                pending += 1
                at += 1
                continue
            if kind >= _COMPOSING:
                odd = True
                break
            if kind not in (_WORD, _UNIT):
                readable = False
                pending = 0
                at += 1
                continue
            if readable:
                removed += pending
            pending = 0
            readable = True
            start, end, length = at, at + 1, 1
            number, mark = values[code], traits[code]
            at += 1
            if kind == _WORD:
                while True:
                    code = codes[at]
                    kind = kinds[code]
                    if kind == _WORD:
                        if readable:
                            removed += pending
                        readable = True
                        pending = 0
                        # The innermost loop. Unsigned indices spare the check for negative ones. A run longer
                        # than a word may be is dropped below, so its wrong hash does no harm.
                        spot, begun = np.uint64(at), np.uint64(at - length)
                        while kind == _WORD:
                            number += values[code] * powers[(spot - begun) & _LAST]
                            mark |= traits[code]
                            spot += _ONE
                            code = codes[spot]
                            kind = kinds[code]
                        length += np.int64(spot) - at
                        end = at = np.int64(spot)
                    if kind == _INVISIBLE:
                        pending += 1
                        at += 1
                        continue
                    if kind != _APOSTROPHE:
                        if kind & _RARE == 0 and pending == 0:
                            odd = kind >= _COMPOSING
                        elif kind == _SIGN:
                            after = at
                            while kinds[codes[after]] == _SIGN:
                                after += 1
                            kind = kinds[codes[after]]
                            if length <= _SIGNED and (pending > 0 or kind >= _INVISIBLE):
                                odd = True
                            elif length <= _SIGNED and kind & (_WORD | _UNIT) == 0:
                                while at < after:
                                    number += values[codes[at]] * powers[np.uint64(length) & _LAST]
                                    length += 1
                                    at += 1
                                end = at
                                readable = False
                        elif kind == _STAND_IN:
                            following = codes[at + 1]
                            odd = kinds[following] == _INVISIBLE
                            for letter in _AFTER_STAND_IN:
                                odd = odd or letter == following
                        elif kind in (_HYPHEN, 0):
                            # A word may go on in the next line.
                            after = at + 1 if kind == _HYPHEN else at
                            if codes[after] == _RETURN:
                                after += 1
                            if after < stop and codes[after] == _LINE_END:
                                deepest = after + DEEPEST_INDENT
                                while codes[after + 1] in (_BLANK, _TAB) and after < deepest:
                                    after += 1
                                following = codes[after + 1]
                                odd = kinds[following] & _WORD > 0
                                # Capitals and digits begin other words; numpy decides on all the rest.
                                for first, final in _OTHER_WORDS:
                                    if first <= following <= final:
                                        odd = False
                        else:
                            odd = kind >= _COMPOSING
                        break
                    after = at + 1
                    while kinds[codes[after]] == _INVISIBLE:
                        after += 1
                    if kinds[codes[after]] != _WORD:
                        break
                    readable = False
                    pending = 0
                    number += values[code] * powers[np.uint64(length) & _LAST]
                    mark |= traits[code]
                    at += 1
                    end = at
                    length += 1
            if odd:
                break
            if length > LONGEST_WORD:
                continue
            number = (number ^ (number >> _S30)) * _M1
            number = (number ^ (number >> _S27)) * _M2
            place = base + tokens
            starts[place], ends[place], marks[place] = start, end, mark
            keys[place] = number ^ (number >> _S31)
            tokens += 1
            scripts = mark & _SCRIPTS
            if scripts & (scripts - _ONE32):
                scripts = (mark >> _OWN) & _ALL_ALIKE
                if not scripts or scripts & (scripts - _ONE32):
                    mixed += 1
                    group_at[place] = groups + 1
                    continue
            group = group_of[scripts]
            group_at[place] = group
            inside[group] += 1
            if scripts:
                lettered[group] += 1
            if mark >> _MARKS:
                for rank in range(most if group < groups else 0):
                    member = members[group, rank]
                    if member >= 0 and (mark >> (_MARKS + np.uint32(member))) & _ONE32:
                        shown[group, rank] += 1
        if odd:
            unusual[text] = True
            continue
        # 2: words of mixed scripts without a distinctive letter: the text's commonest of these scripts.
        if mixed:
            pure = inside.copy()
            for token in range(base, base + tokens):
                if group_at[token] != groups + 1:
                    continue
                mark = marks[token]
                scripts = mark & _SCRIPTS
                chosen_group, best = int(group_of[scripts]), 0
                for other in range(_ALIKE):
                    if (scripts >> np.uint32(other)) & _ONE32 and pure[other] >= best:
                        chosen_group, best = other, pure[other] + 1
                group_at[token] = chosen_group
                inside[chosen_group] += 1
                lettered[chosen_group] += 1
                if mark >> _MARKS:
                    for rank in range(most if chosen_group < groups else 0):
                        member = members[chosen_group, rank]
                        if member >= 0 and (mark >> (_MARKS + np.uint32(member))) & _ONE32:
                            shown[chosen_group, rank] += 1
        # 3: the language of each script in this text.
        own = declared[text]
        winners[groups] = rest
        for each in range(groups):
            winners[each] = members[each, 0]
            best = enough = 0
            is_own = False
            for rank in range(most):
                member = members[each, rank]
                if member >= 0 and member == own:
                    is_own = True
                if shown[each, rank] > 0 and shown[each, rank] * RARITY >= inside[each]:
                    enough += 1
                    if shown[each, rank] > best:
                        best = shown[each, rank]
                        winners[each] = member
            if enough == 0:
                if is_own:
                    winners[each] = own
                elif lexical[each] and inside[each] > 0:
                    # The language whose dictionary has most of these words; numpy looks up new ones.
                    tally[:] = 0
                    for token in range(base, base + tokens):
                        if group_at[token] != each:
                            continue
                        key = max(keys[token], _ONE)
                        slot = key & last_known
                        while known_keys[slot] != key and known_keys[slot] != 0:
                            slot = (slot + _ONE) & last_known
                        if known_keys[slot] == 0:
                            odd = True
                            break
                        for rank in range(most):
                            member = members[each, rank]
                            if member >= 0:
                                tally[rank] += (known_values[slot] >> np.uint64(member)) & _ONE
                    for rank in range(most):
                        if members[each, rank] >= 0 and tally[rank] > best:
                            best = tally[rank]
                            winners[each] = members[each, rank]
            elif enough > 1:
                odd = True
        if odd:
            unusual[text] = True
            continue
        for each in range(groups + 1):
            salt_of[each] = salts[winners[each]]
            votes[text, winners[each]] += lettered[each]
        # 4: look up canonical tokens. Missing words overwrite the first entries of the block, no longer
        # needed.
        before = kept
        for token in range(np.uint64(base), np.uint64(base + tokens)):
            key = keys[token] ^ salt_of[group_at[token]]
            if key == 0:
                key = _ONE
            slot = key & last
            while slot_keys[slot] != key and slot_keys[slot] != 0:
                slot = (slot + _ONE) & last
            if slot_keys[slot] == 0:
                language = winners[group_at[token]]
                starts[missing], ends[missing] = starts[token], ends[token]
                chosen[missing], keys[missing], marks[missing] = language, key, marks[token]
                places[missing] = kept
                hashes[kept] = 0
                missing += 1
                kept += 1
                continue
            removed += slot_repairs[slot]
            value = slot_values[slot]
            hashes[kept] = value
            kept += value != 0
        counts[text] = kept - before
        repairs[text] = removed
        base += tokens
    return missing, kept
