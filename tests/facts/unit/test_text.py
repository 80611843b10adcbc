from __future__ import annotations

import math
import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.facts.postings import unpack
from turnstore.facts._scoring.text import Lexical, bm25, norm, pack, terms

IDS = st.text("abcXYZ019", min_size=12, max_size=12)


@pytest.mark.parametrize(
    "one, other",
    [
        ("Café", "cafe"),
        ("Zürich", "ZURICH"),
        ("ﬁve", "five"),
        ("dogs", "dog"),
        ("painting", "painted"),
        ("Ada\u2019s garden", "ada garden"),
        ("parties", "party"),
        ("Москва", "москва"),
        ("1\uff123", "123"),
    ],
)
def test_forms_of_a_word_are_one_term(one: str, other: str) -> None:
    assert terms(one) == terms(other) != Counter()


def test_different_words_and_numbers_are_different_terms() -> None:
    assert len(terms("cat dog 12 21 Анна 東京 京都")) == 7


def test_a_text_without_blanks_is_found_by_a_part_of_it() -> None:
    assert terms("東京") <= terms("私は東京に住んでいます")
    assert terms("京") == Counter({"京": 1})


def test_words_of_two_scripts_without_a_blank_are_parted() -> None:
    assert terms("iPhone15を買った") >= terms("iphone15")
    assert terms("l'été, \u05e9\u05c1\u05dc\u05d5\u05dd") == terms("lete \u05e9\u05dc\u05d5\u05dd")


def test_a_vowel_sign_belongs_to_its_letter() -> None:
    assert len(terms("हिन्दी")) == 1
    assert terms("का") != terms("की")


def test_what_is_no_word_has_no_terms() -> None:
    assert terms("") == terms("🎉 — …!?") == terms("the of and") == Counter()


def test_how_often_a_term_stands_is_counted() -> None:
    assert terms("tea, Tea and teas")[next(iter(terms("tea")))] == 3


@given(st.text())
def test_terms_of_any_text_can_be_stored(text: str) -> None:
    found = terms(text)
    assert found == terms(text.upper().lower()) or not text.isascii()
    for term, count in found.items():
        assert term
        assert "#" not in term
        assert not any(letter.isspace() for letter in term)
        assert count > 0


@given(st.text(st.characters(categories=["L", "N", "P", "Zs"])))
def test_forms_of_unicode_do_not_count(text: str) -> None:
    assert terms(unicodedata.normalize("NFD", text)) == terms(unicodedata.normalize("NFC", text))


def test_the_digest_of_a_text_ignores_case_and_blanks_and_nothing_else() -> None:
    assert norm("Ada  lives\nin Paris.") == norm(" ada lives in PARIS. ")
    assert norm("Ada lives in Paris.") != norm("Ada lives in Paris")
    assert norm("1 2") != norm("12")
    assert len(norm("\ud800")) == 32


@given(st.lists(st.tuples(IDS, st.integers(1, 255), st.integers(1, 65535))))
def test_what_was_packed_is_read(records: list[tuple[str, int, int]]) -> None:
    packed = b"".join(pack(*record) for record in records)
    assert len(packed) == 15 * len(records)
    assert unpack(packed) == records


def test_large_numbers_are_capped_and_wrong_ids_refused() -> None:
    assert unpack(pack("a" * 12, 1000, 100_000)) == [("a" * 12, 255, 65535)]
    with pytest.raises(ValueError, match="12 bytes"):
        pack("short", 1, 1)


def test_a_score_by_hand() -> None:
    found = bm25(Counter(["paris"]), {"paris": [("f1", 2, 10)]}, documents=4, total_length=20)
    rarity = math.log(1 + 3.5 / 1.5)
    assert found == {"f1": pytest.approx(rarity * 1.9 * 2 / (2 + 0.9 * (0.6 + 0.4 * 2)))}


def test_a_rare_term_counts_more_and_a_long_text_less() -> None:
    postings = {"rare": [("r", 1, 5)], "often": [("o1", 1, 5), ("o2", 1, 50), ("o3", 1, 5)]}
    found = bm25(Counter(["rare", "often", "none"]), postings, 10, 100)
    assert found["r"] > found["o1"] > found["o2"] > 0
    assert found["o1"] == found["o3"]
    assert found.keys() == {"r", "o1", "o2", "o3"}


def test_nothing_is_found_where_nothing_is() -> None:
    assert bm25(Counter(["x"]), {}, 0, 0) == {}
    assert bm25(Counter(), {"x": [("a", 1, 1)]}, 1, 1) == {}


@given(st.lists(st.sampled_from(["tea", "milk", "ada"]), min_size=1), st.randoms())
def test_scores_do_not_depend_on_the_order_of_terms(words: list[str], random: object) -> None:
    shuffled = list(words)
    random.shuffle(shuffled)  # type: ignore[attr-defined] # hypothesis' own Random
    postings = {word: [("a", 1, 3), (word, 2, 7)] for word in ("tea", "milk", "ada")}
    assert bm25(Counter(words), postings, 9, 40) == bm25(Counter(shuffled), postings, 9, 40)


@given(
    st.dictionaries(
        st.sampled_from(["tea", "milk", "ada", "oslo"]),
        st.lists(
            st.tuples(IDS, st.integers(1, 300), st.integers(1, 99)), unique_by=lambda one: one[0]
        ),
    ),
    st.lists(st.sampled_from(["tea", "milk", "ada", "none"])),
)
def test_packed_postings_give_the_same_scores_best_first(
    postings: dict[str, list[tuple[str, int, int]]], words: list[str]
) -> None:
    packed = {term: b"".join(pack(*one) for one in found) for term, found in postings.items()}
    read = {term: unpack(found) for term, found in packed.items()}
    slow = bm25(Counter(words), read, 20, 200)
    found = Lexical(Counter(words), packed, 20, 200)
    best = found.best(1_000)
    fast = dict(zip(best, found.scores(best), strict=True))
    assert fast == pytest.approx(slow)
    assert len(found) == len(slow)
    assert best == sorted(fast, key=lambda id_: (-fast[id_], id_))
    for count in (1, 2, 5):
        assert found.best(count) == best[:count]
    others = [id_ for one in postings.values() for id_, _, _ in one]
    assert found.scores(others) == [fast.get(id_, 0.0) for id_ in others]


def test_packed_postings_that_are_cut_off_are_refused() -> None:
    with pytest.raises(ValueError, match="multiple of element size"):
        Lexical(Counter(["tea"]), {"tea": b"x" * 16}, 1, 1)
