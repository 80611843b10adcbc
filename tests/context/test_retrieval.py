"""Sources: what they know is put into a frame, within a budget, and they may fail."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import tiktoken
import tiktoken.load
from hypothesis import given
from hypothesis import strategies as st

from tests.context.flows import Recorder, drive
from turnstore.context import FRAME, Context, Query, Recalled, Retrieval, TokenCounter, tokens
from turnstore.context.retrieval import framed, recall

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LETTERS = TokenCounter("letters", lambda message: len(message["content"]))


def recalled(*retrievals: Retrieval, frame: str = "{texts}", counter: Any = LETTERS) -> str:
    return framed(drive(recall(retrievals, Query("why?"), counter, Counter())), frame)


def texts(*found: str) -> Retrieval:
    return Retrieval(lambda _: found)


def test_the_texts_of_all_sources_stand_in_one_frame() -> None:
    titled = Retrieval(lambda _: ["one", "two"], title="Handbook")
    text = recalled(titled, Retrieval(lambda _: "three"), frame=FRAME)
    assert text.endswith("\n\nHandbook:\none\n\ntwo\n\nthree")
    assert "not instructions" in text


def test_what_is_taken_says_whose_it_is_and_what_it_is() -> None:
    page = object()
    two: list[Recalled | str] = [Recalled(" one ", page, "not mine"), "two"]
    titled = Retrieval(lambda _: two, title="Handbook")
    one = Retrieval(lambda _: Recalled("three", 3))
    taken = drive(recall([titled, one], Query("why?"), None, Counter()))
    assert taken == (
        Recalled("one", page, "Handbook"),
        Recalled("two", None, "Handbook"),
        Recalled("three", 3, ""),
    )
    assert taken[0].item is page
    assert framed(taken, "{texts}") == "Handbook:\none\n\ntwo\n\nthree"


def test_what_is_not_sent_was_not_recalled() -> None:
    found = [Recalled("aaaa", 1), Recalled("bbbbbbbb", 2), Recalled("", 3), Recalled("aaaa", 4)]
    taken = drive(recall([Retrieval(lambda _: found, tokens=6)], Query("?"), LETTERS, Counter()))
    assert taken == (Recalled("aaaa", 1),)


@pytest.mark.parametrize("nothing", [None, "", [], ["", "  "], ()])
def test_nothing_found_injects_nothing(nothing: Any) -> None:
    assert recalled(Retrieval(lambda _: nothing), frame=FRAME) == ""


def test_a_source_is_asked_with_the_query() -> None:
    source = Recorder(None)
    query = Query("why?", [{"role": "user", "content": "why?"}], [], ("Ada",), "key")
    drive(recall([Retrieval(source)], query, None, Counter()))
    assert source.given == [query]


def test_a_generator_is_read_where_its_deadline_holds() -> None:
    def source(_: Query) -> Iterator[str]:
        yield "one"
        yield "two"

    ask = Retrieval(source, deadline=1.5).ask(Query("why?"))
    assert ask.deadline == 1.5
    assert ask.function(*ask.arguments) == ["one", "two"]
    assert ask.function.__qualname__.endswith("source")
    assert recalled(Retrieval(source)) == "one\n\ntwo"


def test_an_async_source_stays_async() -> None:
    async def source(query: Query) -> list[str]:
        return [query.text]

    assert Retrieval(source).ask(Query("why?")).function is source


def test_whole_texts_are_taken_while_they_fit_in_their_order() -> None:
    found = Retrieval(lambda _: ["aaaa", "bbbbbbbb", "cc", "d"], tokens=6)
    assert recalled(found) == "aaaa\n\ncc"
    assert recalled(Retrieval(lambda _: ["a" * 9999], tokens=None)) == "a" * 9999


def test_each_source_has_a_budget_of_its_own_and_no_text_comes_twice() -> None:
    first = Retrieval(lambda _: ["aaa", "bbb"], tokens=3)
    second = Retrieval(lambda _: ["aaa", "ccc"], tokens=3)
    assert recalled(first, second) == "aaa\n\nccc"


@given(st.lists(st.text("ab", max_size=8), max_size=9), st.integers(1, 20))
def test_a_budget_holds(found: list[str], budget: int) -> None:
    taken = recalled(Retrieval(lambda _: found, tokens=budget)).split("\n\n")
    assert sum(map(len, taken)) <= budget
    places = [found.index(text) for text in taken if text]
    assert places == sorted(places)


def test_tokens_are_estimated_where_the_store_counts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A table that has to be fetched first would hold up the turn, beyond every deadline."""

    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(tiktoken, "get_encoding", never)
    monkeypatch.setattr(tiktoken.load, "read_file", never)
    monkeypatch.setattr(tokens, "_encoding", never)
    found = Retrieval(lambda _: ["a" * 60, "b" * 27, "c"], tokens=17)
    assert recalled(found, counter=None) == "b" * 27 + "\n\nc"


@pytest.mark.parametrize(
    "answer",
    [RuntimeError("down"), TimeoutError(), 7, {"text": "a"}, b"a", ["a", 7], Recalled(7)],  # type: ignore[arg-type]
)
def test_a_source_that_fails_adds_nothing_and_the_others_do(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Retrieval(Recorder(answer))
    counts = Counter[str]()
    flow = recall([broken, texts("fine")], Query("why?"), LETTERS, counts)
    assert drive(flow) == (Recalled("fine"),)
    assert (broken.failures, counts) == (1, {"recall": 1})
    assert "recall failed" in caplog.text


def test_a_strict_source_raises_what_it_raised() -> None:
    broken = Retrieval(Recorder(RuntimeError("down")), strict=True)
    with pytest.raises(RuntimeError, match="down"):
        recalled(broken, texts("never"))
    assert broken.failures == 1


def test_what_a_text_says_in_braces_stays() -> None:
    assert recalled(texts("{texts} {0}"), frame="<{texts}>") == "<{texts} {0}>"


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({"source": "facts"}, TypeError, "a source is a function"),
        ({"deadline": 0}, ValueError, "above 0"),
        ({"deadline": float("nan")}, ValueError, "above 0"),
        ({"deadline": "soon"}, TypeError, "number of seconds"),
        ({"tokens": 0}, ValueError, r"Retrieval\(tokens=0\): a limit is at least 1"),
        ({"tokens": -5}, ValueError, "at least 1"),
        ({"title": 7}, TypeError, "a title is text"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Retrieval(**{"source": print, **options})


@pytest.mark.parametrize("sources", [print, texts("a"), "facts", ["facts"]])
def test_a_context_takes_a_list_of_sources(sources: Any) -> None:
    with pytest.raises(TypeError, match=r"list of functions|a source is a function"):
        Context(sources=sources)


def test_a_frame_has_a_place_for_the_texts() -> None:
    with pytest.raises(ValueError, match=r"no place for \{texts\}"):
        Context(frame="Facts:")


def test_the_types_of_sources() -> None:
    """Checked by mypy: all of these are sources."""

    class Facts:
        async def __call__(self, query: Query, /) -> Sequence[str]:
            return [query.text]

    async def later(query: Query) -> str | None:
        return query.text or None

    def pieces(query: Query) -> Iterator[str]:
        yield query.text

    assert Context(sources=[Facts(), later, pieces, Retrieval(Facts())]).counts == {}
