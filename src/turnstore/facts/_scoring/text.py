"""The lexical half of a search: terms of a text, packed postings, and their BM25 scores."""

from __future__ import annotations

import math
import re
import struct
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from .stemming import stem

__all__ = ["ID_BYTES", "Lexical", "asks", "bm25", "norm", "pack", "terms"]

ID_BYTES = 12
_RECORD = struct.Struct(f">{ID_BYTES}sBH")  # id, frequency, length in terms
_LAYOUT = np.dtype([("id", f"S{ID_BYTES}"), ("tf", "u1"), ("length", ">u2")])  # the same
_MOST_FREQUENT, _LONGEST = 0xFF, 0xFFFF
_LONGEST_TERM = 128  # characters; one letter of a text may become a word of eighteen

# Short texts: their length says little of what they are about.
_K1, _B = 0.9, 0.4

_ASCII_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
# The classes of marks that do not count: accents, Hebrew points, Arabic harakat, which one
# leaves out who types in a hurry. The signs of Indic and Thai vowels are of other classes.
_ACCENTS = frozenset((*range(10, 36), *range(200, 256)))
# In scripts without blanks, each two neighbouring characters are a term.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_RUNS = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")

_QUESTION = re.compile("[?\uff1f\u061f\u037e][\"'\u201d\u2019\u00bb)\\]]*\\s*$")

_FREQUENT = """
    a an the and or of to in on at for with by from as is are was were be been am do does did
    has have had it its this that these those i you he she we they me him her us them my your
    his our their what which who whom when where why how s t
"""
_STOP = frozenset(_FREQUENT.split())


def terms(text: str) -> Counter[str]:
    """Take the terms out of a text, with how often it has each.

    Letter case, accents and forms of compatibility do not count; English words are brought
    down to their stems, and a few that stand in every text are left out. In scripts without blanks,
    each two neighbouring characters are a term. No term is empty or has a `#`, and of a long one
    the first 128 characters count.
    """
    return Counter(term[:_LONGEST_TERM] for term in _terms(text))


def norm(text: str) -> str:
    """Digest a text such that two texts that say the same word for word have one digest.

    Letter case, blanks and forms of compatibility do not count.
    """
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def asks(text: str) -> bool:
    """Say whether a text ends with a question."""
    return _QUESTION.search(text) is not None


def pack(id: str, tf: int, length: int) -> bytes:  # noqa: A002 - the name of the field
    """Pack one posting: a fact, how often it has the term, how many terms it has in all.

    Raises:
        ValueError: The id has not 12 bytes.
    """
    name = id.encode()
    if len(name) != ID_BYTES:
        msg = f"an id has {ID_BYTES} bytes, not {len(name)}: {id!r}"
        raise ValueError(msg)
    return _RECORD.pack(name, min(tf, _MOST_FREQUENT), min(length, _LONGEST))


def bm25(
    query: Counter[str],
    postings: Mapping[str, list[tuple[str, int, int]]],
    documents: int,
    total_length: int,
) -> dict[str, float]:
    """Score the texts that have terms of a query, by BM25.

    Args:
        query: The terms of the query.
        postings: Of each of its terms, where there are any.
        documents: How many texts there are in all.
        total_length: How many terms they have in all.

    Returns:
        A score above 0 for each text that has a term of the query.
    """
    scores: dict[str, float] = {}
    average = max(total_length / max(documents, 1), 1.0)
    for term in sorted(query):  # sums of floats depend on their order
        found = postings.get(term)
        if not found:
            continue
        rarity = math.log1p((max(documents - len(found), 0) + 0.5) / (len(found) + 0.5))
        weight = rarity * query[term] * (_K1 + 1)
        for id_, tf, length in found:
            score = weight * tf / (tf + _K1 * (1 - _B + _B * length / average))
            scores[id_] = scores.get(id_, 0.0) + score
    return scores


class Lexical:
    """The texts that have terms of a question, out of packed postings, scored as by `bm25`.

    Args:
        query: The terms of the question.
        records: The postings of each of its terms, where there are any.
        documents: How many texts there are in all.
        total_length: How many terms they have in all.

    Raises:
        ValueError: Postings do not end at the end of a record.
    """

    __slots__ = ("_ids", "_sums")

    def __init__(
        self, query: Counter[str], records: Mapping[str, bytes], documents: int, total_length: int
    ) -> None:
        average = max(total_length / max(documents, 1), 1.0)
        ids: list[npt.NDArray[np.bytes_]] = [np.empty(0, _LAYOUT["id"])]
        scores: list[npt.NDArray[np.float64]] = [np.empty(0)]
        for term in sorted(query):  # sums of floats depend on their order
            found = np.frombuffer(records.get(term, b""), dtype=_LAYOUT)
            if len(found):
                rarity = math.log1p((max(documents - len(found), 0) + 0.5) / (len(found) + 0.5))
                tf = found["tf"].astype(np.float64)
                length = found["length"].astype(np.float64)
                weight = rarity * query[term] * (_K1 + 1)
                ids.append(found["id"])
                scores.append(weight * tf / (tf + _K1 * (1 - _B + _B * length / average)))
        self._ids, self._sums = _summed(np.concatenate(ids), np.concatenate(scores))

    def __len__(self) -> int:
        return len(self._ids)

    def best(self, count: int) -> list[str]:
        """Give the ids of the best texts, best first; of equals, the smaller one first."""
        sums = self._sums
        near = np.arange(len(sums))
        if len(sums) > count:
            # With all that are as good as the last one, so that ids decide about them.
            near = np.flatnonzero(sums >= np.partition(sums, len(sums) - count)[-count])
        order = near[np.argsort(-sums[near], kind="stable")]  # they are sorted by their ids
        found: list[str] = self._ids[order[:count]].astype(str).tolist()
        return found

    def scores(self, ids: Sequence[str]) -> list[float]:
        """Give the scores of texts; 0 for one that has no term of the question."""
        if not len(self._ids) or not ids:
            return [0.0] * len(ids)
        wanted = np.array(ids, dtype=_LAYOUT["id"])
        places = np.minimum(np.searchsorted(self._ids, wanted), len(self._ids) - 1)
        found: list[float] = np.where(self._ids[places] == wanted, self._sums[places], 0.0).tolist()
        return found


def _summed(
    ids: npt.NDArray[np.bytes_], scores: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.bytes_], npt.NDArray[np.float64]]:
    """Add up the scores of each id, and sort by the ids."""
    # Numbers are sorted much faster than bytes, in particular such that are nearly sorted.
    parts = ids.view(">u4").reshape(-1, ID_BYTES // 4)
    low = (parts[:, 1].astype(np.uint64) << np.uint64(32)) | parts[:, 2]
    order = np.lexsort((low, parts[:, 0].astype(np.uint32)))
    ids, scores = ids[order], scores[order]
    is_first = np.ones(len(ids), dtype=bool)
    is_first[1:] = ids[1:] != ids[:-1]
    sums = np.bincount(np.cumsum(is_first) - 1, scores).astype(np.float64, copy=False)
    return ids[is_first], sums


def _terms(text: str) -> Iterator[str]:
    text = text.casefold()
    if text.isascii():
        for word in _ASCII_WORD.findall(text):
            yield from _term(word)
        return
    for word in _folded(text).split():
        if word.isascii():
            yield from _term(word.strip("'"))
        elif _IS_UNSPACED.search(word) is None:
            yield word.replace("'", "")
        else:
            for run in _RUNS.findall(word):
                if _IS_UNSPACED.match(run) is None:
                    yield from (_term(run.strip("'")) if run.isascii() else (run,))
                elif len(run) == 1:
                    yield run
                else:
                    yield from (run[at : at + 2] for at in range(len(run) - 1))


def _folded(text: str) -> str:
    """Bring a text into the form in which its words are compared, with blanks between them."""
    apart = unicodedata.normalize("NFKD", text.replace("\u2019", "'"))
    bare = "".join(
        letter
        for letter in apart
        if unicodedata.combining(letter) not in _ACCENTS and unicodedata.category(letter) != "Cf"
    )
    whole = unicodedata.normalize("NFKC", bare).casefold()
    return "".join(letter if _in_a_word(letter) else " " for letter in whole)


def _in_a_word(letter: str) -> bool:
    return letter.isalnum() or letter == "'" or unicodedata.category(letter).startswith("M")


def _term(word: str) -> Iterator[str]:
    """Give the term of an English word; nothing for one that stands everywhere."""
    word, _, ending = word.partition("'")
    if ending not in ("", "s", "t", "m", "d", "ll", "re", "ve"):
        word += ending
    if word and word not in _STOP:
        yield stem(word)
