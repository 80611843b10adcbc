"""Tell whether two texts say the same, word for word.

Vectors alone cannot tell. With the usual small embedder "Ada's left knee hurts" and "Ada's right
knee hurts" have a cosine of 0.98, "2 cats" and "3 cats" 0.97, "bought" and "sold" 0.96, and
"tea more than coffee" turned round 1.00; "lives" and "resides" have 0.94. So a text counts as a
repetition of another only where the two have the same words in the same order, but for what says
nothing: numbers, dates, negations and names are then the same too.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["is_repetition"]

# Numbers with their signs and separators, words with their apostrophes, and signs that mean
# something; the rest is punctuation.
_TOKEN = re.compile(r"[-+]?\d+(?:[.,:/-]\d+)*|[^\W\d_]+(?:['-][^\W\d_]+)*|[%$€£¥°<>=+&@#/]|\d")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NOT = re.compile(r"\b(\w+?)n't\b")
_WHOLE = {"ca": "can", "Ca": "Can", "wo": "will", "Wo": "Will", "sha": "shall", "Sha": "Shall"}
_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905 - a list would take thirteen lines
    )
}
_SAYS_NOTHING = frozenset(("the", "now", "currently", "presently"))
_GOES_ON = frozenset(("am", "is", "are"))


def is_repetition(one: str, other: str) -> bool:
    """Tell whether two texts say the same, word for word.

    Letter case does not count in the first word, nor do punctuation, "the", "now", how a
    number is written, "is living" for "lives" and "doesn't" for "does not". Everything
    else does: numbers, dates, negations, names, and the order of all of it.
    """
    pair = _words(one), _words(other)
    return bool(pair[0]) and len(pair[0]) == len(pair[1]) and all(map(_agree, *pair))


def _words(text: str) -> list[tuple[str, str]]:
    """Give the words of a text, each with the one that it stands for in a duration."""
    plain = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    plain = _NOT.sub(lambda found: f"{_WHOLE.get(found[1], found[1])} not", plain)
    words: list[tuple[str, str]] = []
    aside = ""
    for token in _TOKEN.findall(_THOUSANDS.sub("", plain)):
        low = token.casefold()
        if low in _SAYS_NOTHING:
            continue
        if aside and low.endswith("ing") and token == low:
            words.append((low, _stem(low[: -len("ing")])))
        else:
            words += [(aside, "")] if aside else []
            words.append((_NUMBERS.get(low) or (token if words or aside else low), ""))
        aside = low if low in _GOES_ON and words else ""
        if aside:
            del words[-1]
    return [*words, (aside, "")] if aside else words


def _agree(one: tuple[str, str], other: tuple[str, str]) -> bool:
    if one[1] and other[1]:
        return one[1] == other[1]
    if one[1] or other[1]:
        stem, word = (one[1], other[0]) if one[1] else (other[1], one[0])
        return _stem(word.removesuffix("s")) == stem
    return one[0] == other[0]


def _stem(verb: str) -> str:
    """Cut a verb down to what "live", "liv-ing" and "run-ning" share with one another."""
    verb = verb.removesuffix("e")
    return verb[:-1] if len(verb) > 3 and verb[-1] == verb[-2] else verb  # noqa: PLR2004 - "see"
