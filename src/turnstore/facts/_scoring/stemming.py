"""Bring English words down to a form that their inflections share.

Regular endings are cut off by Porter's rules of 1980. Irregular verbs and plurals, which no
rule reaches, are looked up first: "went" in a memory answers a question about "go".
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["stem"]

_SHORTEST = 3

# Of each line the first word is the one that the others become.
_IRREGULAR = """
bear bore borne | become became | begin began begun
bend bent | bind bound | bite bit bitten | bleed bled | blow blew blown | break broke broken
breed bred | bring brought | build built | burn burnt | buy bought | catch caught
choose chose chosen | cling clung | come came | creep crept | deal dealt | dig dug
draw drew drawn | dream dreamt | drink drank drunk | drive drove driven
eat ate eaten | fall fell fallen | feed fed | feel felt | fight fought | find found
flee fled | fly flew flown | forbid forbade forbidden | forget forgot forgotten
forgive forgave forgiven | freeze froze frozen | get got gotten | give gave given
go went gone | grow grew grown | hang hung | hear heard | hide hid hidden
hold held | keep kept | kneel knelt | know knew known | lay laid | lead led | learn learnt
leave left | lend lent | lie lain | light lit | lose lost | make made | mean meant | meet met
pay paid | ride rode ridden | ring rang rung | rise rose risen | run ran | say said
see saw seen | seek sought | sell sold | send sent | shake shook shaken | shine shone
shoot shot | show shown | shrink shrank shrunk | sing sang sung | sink sank sunk | sit sat
sleep slept | slide slid | speak spoke spoken | spell spelt | spend spent | spin spun
stand stood | steal stole stolen | stick stuck | sting stung | strike struck | swear swore sworn
sweep swept | swim swam swum | swing swung | take took taken | teach taught | tear tore torn
tell told | think thought | throw threw thrown | understand understood | wake woke woken
wear wore worn | weave wove woven | weep wept | win won | write wrote written
child children | foot feet | goose geese | half halves | knife knives | leaf leaves
man men | mouse mice | person people | shelf shelves | tooth teeth | wife wives | wolf wolves
woman women
"""
_KNOWN = {
    form: forms[0]
    for forms in (line.split() for line in _IRREGULAR.replace("\n", "|").split("|"))
    for form in forms[1:]
}

# Porter's steps 2, 3 and 4: the ending, and what takes its place.
_DOUBLE = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize",
    "abli": "able", "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous",
    "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al", "iveness": "ive",
    "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
}  # fmt: skip
_ADJECTIVE = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_LAST: dict[str, str] = dict.fromkeys(
    ("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion",
     "ou", "ism", "ate", "iti", "ous", "ive", "ize"), "",
)  # fmt: skip
_LOST_E = ("at", "bl", "iz")  # before "ed" and "ing"

_SEQUENCES = re.compile("v+c+")


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Give the stem of a word of lower-case ASCII letters; any other word as it is."""
    word = _KNOWN.get(word, word)
    if len(word) < _SHORTEST or not (word.isascii() and word.isalpha()):
        return word
    word = _without_participle(_without_plural(word))
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _DOUBLE, least=1)
    word = _replaced(word, _ADJECTIVE, least=1)
    word = _replaced(word, _LAST, least=2)
    return _without_e(word)


def _shape(word: str) -> str:
    """Write c for each consonant and v for each vowel; a y after a consonant is a vowel."""
    shape = ""
    for letter in word:
        is_vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if is_vowel else "c"
    return shape


def _measure(word: str) -> int:
    """Count the sequences of vowels that consonants follow."""
    return len(_SEQUENCES.findall(_shape(word)))


def _is_short(word: str) -> bool:
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_participle(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    root = word[: -2 if word.endswith("ed") else -3]
    if not word.endswith(("ed", "ing")) or "v" not in _shape(root):
        return word
    if root.endswith(_LOST_E):
        return root + "e"
    if len(root) > 1 and root[-1] == root[-2] and _shape(root).endswith("cc"):
        return root if root[-1] in "lsz" else root[:-1]
    return root + "e" if _measure(root) == 1 and _is_short(root) else root


def _replaced(word: str, endings: dict[str, str], *, least: int) -> str:
    """Replace the longest of some endings, if what stands before it measures enough."""
    for size in range(7, 1, -1):
        ending = word[-size:]
        if len(ending) < size or ending not in endings:
            continue
        root = word[:-size]
        if _measure(root) < least or (ending == "ion" and root[-1:] not in ("s", "t")):
            return word
        return root + endings[ending]
    return word


def _without_e(word: str) -> str:
    if word.endswith("e"):
        root = word[:-1]
        size = _measure(root)
        if size > 1 or (size == 1 and not _is_short(root)):
            word = root
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word
