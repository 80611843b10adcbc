"""What a context makes of a history, without a server and on one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from openai import OpenAI

from tests.context.flows import Recorder, drive, history_of, said
from tests.unit.histories import Json, asks, assistant, result, user
from turnstore import History, Window
from turnstore.context import (
    Boundary,
    Context,
    Entities,
    Query,
    Recalled,
    Retrieval,
    Rewrite,
    Summary,
    Topics,
)
from turnstore.messages import FORMATS
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore import AsyncStore, Store
    from turnstore.context.context import Prepared

CHAT, RESPONSES = FORMATS["openai.chat"], FORMATS["openai.responses"]

BOATS = "how do I sail a boat"
PIZZA = "what is the best pizza dough"


def embed(texts: list[str]) -> list[list[float]]:
    """Place texts by what they are about: boats, pizza, or neither."""
    return [[float("boat" in text), float("pizza" in text), 0.1] for text in texts]


def prepared(context: Context, history: History, new: list[Json], rules: Any = CHAT) -> Prepared:
    answer: Prepared = drive(context.prepare(history, new, rules, None, "key"))
    return answer


def test_a_window_alone_costs_nothing() -> None:
    class Untouchable(History):
        @property
        def elements(self) -> Any:
            raise AssertionError

    history = Untouchable([], 0, has_older=False)
    for context in (Context(), Context(Window(turns=3)), Context(rewrite=Rewrite(str))):
        flow = context.prepare(history, [user("hi")], CHAT)
        with pytest.raises(StopIteration) as stop:
            next(flow)
        assert stop.value.value == (history, "", {}, None, ())
        assert stop.value.value.history is history


def test_a_source_is_asked_about_what_is_new() -> None:
    source = Recorder("A fact.")
    history = said("a", "b")
    prepared_ = prepared(
        Context(sources=[source], frame="<{texts}>"), history, [user("c"), user("d")]
    )
    assert prepared_ == (history, "<A fact.>", {}, None, (Recalled("A fact."),))
    assert source.given == [
        Query("c\nd", [user("c"), user("d")], history, (), "key", turns=("id-1", "id-2"))
    ]


def test_a_source_gets_the_rewritten_question_and_the_entities() -> None:
    source, model = Recorder(None), Recorder("Where was Ada born?")
    context = Context(rewrite=Rewrite(model), entities=Entities(), sources=[source])
    answer = prepared(context, said("Who was Ada?"), [user("where was she born, Byron?")])
    assert (source.given[0].text, source.given[0].entities) == (
        "Where was Ada born?",
        ("Byron", "Ada"),
    )
    assert answer.meta == {"entities": ["Byron", "Ada"]}
    assert "user: Who was Ada?" in model.given[0]


def test_the_question_of_an_open_turn_is_asked_again_with_the_results() -> None:
    source, model = Recorder("A fact."), Recorder("rewritten")
    context = Context(
        topics=Topics(embed, idle=timedelta(seconds=1)), rewrite=Rewrite(model), sources=[source]
    )
    history = history_of([[[user(BOATS), assistant("Like so.")]], [[user(PIZZA), asks("1")]]], {})
    answer = prepared(context, history, [result("1")])
    assert answer.history is history
    assert answer.boundary is None
    assert source.given[0].text == "rewritten"
    assert f"\n\n{PIZZA}\n" not in model.given[0].partition("last message")[0]
    assert f"user: {BOATS}" in model.given[0]
    assert PIZZA in model.given[0]
    assert "tool:" not in model.given[0]


def test_a_new_topic_is_sent_alone_and_marked() -> None:
    source, model = Recorder(None), Recorder("never")
    context = Context(topics=Topics(embed), rewrite=Rewrite(model), sources=[source])
    history = said(BOATS, "which boat then")
    answer = prepared(context, history, [user(PIZZA)])
    assert list(answer.history) == []
    assert answer.history.revision == history.revision
    assert answer.meta["boundary"] is True
    assert answer.meta["similarity"] == pytest.approx(0.0099, abs=1e-4)
    boundary = answer.boundary
    assert boundary is not None
    assert (boundary.turns, boundary.reason) == ((1, 2), "similarity")
    assert (source.given[0].text, list(source.given[0].history)) == (PIZZA, [])
    assert model.given == []


def test_a_topic_goes_on_from_its_mark() -> None:
    history = said(BOATS, PIZZA, m2={"boundary": True})
    answer = prepared(Context(topics=Topics(embed)), history, [user("and pizza with more cheese")])
    assert list(answer.history) == history[2:]
    assert (answer.meta, answer.boundary) == ({}, None)


def test_only_the_turns_of_the_topic_are_compared_and_closed() -> None:
    history = said(PIZZA, BOATS, "yes", m2={"boundary": True})
    answer = prepared(Context(topics=Topics(embed)), history, [user(PIZZA)])
    assert answer.boundary is not None
    assert answer.boundary.turns == (2, 3)


def test_entities_outlive_a_topic() -> None:
    context = Context(topics=Topics(embed), entities=Entities())
    history = said(BOATS, m1={"entities": ["Ada"]})
    assert prepared(context, history, [user(PIZZA)]).meta["entities"] == ["Ada"]


def test_a_hook_of_the_callers_closes_the_topic_itself() -> None:
    hook = Recorder(None)
    answer = prepared(Context(topics=Topics(embed, on_boundary=hook)), said(BOATS), [user(PIZZA)])
    assert [type(given) for given in hook.given] == [Boundary]
    assert (list(answer.history), answer.boundary) == ([], None)
    assert answer.meta["boundary"] is True


def test_a_picture_after_a_long_time_opens_a_topic_too() -> None:
    picture = user([{"type": "image_url", "image_url": {"url": "data:,"}}])
    topics = Topics(idle=timedelta(hours=1), clock=lambda: datetime.now(UTC) + timedelta(days=1))
    answer = prepared(Context(topics=topics), said(BOATS), [picture])
    assert answer.boundary == Boundary((1,), None, "idle")


def test_items_of_responses_are_understood() -> None:
    item = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": PIZZA}],
    }
    called = {"type": "function_call_output", "call_id": "1", "output": "1"}
    source = Recorder(None)
    context = Context(topics=Topics(embed), sources=[source])
    turns = history_of([[[{**item, "content": BOATS}]]], {})
    assert prepared(context, turns, [item], RESPONSES).boundary is not None
    assert prepared(context, turns, [called], RESPONSES).boundary is None
    assert [query.text for query in source.given] == [PIZZA, BOATS]


def test_failures_of_all_parts_are_counted_in_one_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    down = Recorder(RuntimeError("down"))
    context = Context(
        topics=Topics(down), rewrite=Rewrite(down), entities=Entities(down), sources=[down, down]
    )
    history = said(BOATS)
    answer = prepared(context, history, [user(PIZZA)])
    assert answer == (history, "", {}, None, ())
    assert context.counts == {"topics": 1, "rewrite": 1, "entities": 1, "recall": 2}
    assert len(caplog.records) == 5


def test_a_strict_source_stops_the_turn() -> None:
    context = Context(sources=[Retrieval(Recorder(RuntimeError("down")), strict=True)])
    with pytest.raises(RuntimeError, match="down"):
        prepared(context, said(), [user("hi")])


@pytest.mark.parametrize("name", ["window", "summary", "topics", "rewrite", "entities"])
def test_wrong_parts(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} is an? {name.capitalize()}, not int"):
        Context(**{name: 7})  # type: ignore[arg-type]


def test_contexts_are_values() -> None:
    assert Context(Window(turns=3)) == Context(Window(turns=3))
    context = Context()
    with pytest.raises(AttributeError):
        context.window = None  # type: ignore[misc]


# -- with a store ------------------------------------------------------------------------

pytestmark = pytest.mark.one_setup


async def talk(store: AsyncStore, question: str, context: Context, name: str = "ada") -> list[Json]:
    """Have one turn, and give what the model was sent."""
    async with store.conversation(name).turn(question, context=context) as turn:
        sent = turn.messages
        turn.reply(f"On {question}")
    return sent


async def test_recalled_texts_are_sent_first_and_never_stored(store: AsyncStore) -> None:
    context = Context(sources=[lambda query: [f"Known of {query.text}."]], frame="<{texts}>")
    chat = store.conversation("ada")
    await chat.append([user("one"), assistant("1")])
    async with chat.turn(
        [{"role": "system", "content": "policy"}, user("two")], context=context
    ) as turn:
        assert turn.messages == [
            {"role": "system", "content": "policy"},
            {"role": "system", "content": "<Known of two.>"},
            user("one"),
            assistant("1"),
            user("two"),
        ]
        turn.reply("2")
    assert await chat.read() == [user("one"), assistant("1"), user("two"), assistant("2")]


async def test_a_turn_tells_what_was_recalled_for_it(store: AsyncStore) -> None:
    def handbook(query: Query) -> list[Recalled | str]:
        return [Recalled("Open at 9.", {"page": 12}), "Closed on Sunday."] if query.text else []

    handed = Recorder(None)
    context = Context(sources=[Retrieval(handbook, title="Handbook")], after=[handed])
    turn = store.conversation("ada").turn("When?", context=context)
    with pytest.raises(RuntimeError, match="has not begun"):
        _ = turn.recalled
    async with turn:
        assert turn.recalled == (
            Recalled("Open at 9.", {"page": 12}, "Handbook"),
            Recalled("Closed on Sunday.", None, "Handbook"),
        )
        assert all(one.text in turn.messages[0]["content"] for one in turn.recalled)
        turn.reply("At nine.")
    assert handed.given[0].recalled == turn.recalled
    assert "page" not in str((await store.conversation("ada").read()).turns)


async def test_where_sources_know_nothing_or_fail_nothing_was_recalled(store: AsyncStore) -> None:
    context = Context(sources=[Recorder("A fact.", None, RuntimeError("down"))])
    recalled: list[tuple[Recalled, ...]] = []
    turn = store.conversation("ada").turn("hi", context=context)
    for _ in range(3):  # a block that was left without a reply may be begun again
        async with turn:
            recalled.append(turn.recalled)
    assert recalled == [(Recalled("A fact."),), (), ()]
    assert context.counts == {"recall": 1}
    async with store.conversation("ada").turn("hi") as turn:
        assert turn.recalled == ()


async def test_topics_over_several_turns(store: AsyncStore) -> None:
    context = Context(topics=Topics(embed))
    await talk(store, BOATS, context)
    assert (
        len(await talk(store, "and without any wind?", Context(topics=Topics(idle=timedelta(9)))))
        == 3
    )
    assert await talk(store, PIZZA, context) == [user(PIZZA)]
    assert await talk(store, "thanks", context) == [
        user(PIZZA),
        assistant(f"On {PIZZA}"),
        user("thanks"),
    ]
    turns = (await store.conversation("ada").read()).turns
    assert [turn.meta.get("boundary", False) for turn in turns] == [False, False, True, False]
    assert context.counts == {}


async def test_a_topic_is_closed_with_a_summary(store: AsyncStore) -> None:
    model = Recorder("They spoke of boats.")
    context = Context(topics=Topics(embed), summary=Summary(model))
    await talk(store, BOATS, context)
    sent = await talk(store, PIZZA, context)
    assert BOATS in model.given[0]
    assert "They spoke of boats." in sent[0]["content"]
    assert sent[1:] == [user(PIZZA)]
    assert len(model.given) == 1


async def test_the_summary_of_a_closed_topic_is_carried_on(store: AsyncStore) -> None:
    context = Context(topics=Topics(embed), summary=Summary(Recorder("They spoke of boats.")))
    for question in (BOATS, PIZZA):
        await talk(store, question, context)
    assert "They spoke of boats." in (await talk(store, "thanks", context))[0]["content"]


async def test_entities_travel_in_the_meta_of_turns(store: AsyncStore) -> None:
    source = Recorder(None)
    context = Context(entities=Entities(limit=2), sources=[source])
    for question in ("who was Ada Lovelace", "and Byron?", "go on"):
        await talk(store, question, context)
    turns = (await store.conversation("ada").read()).turns
    assert [turn.meta["entities"] for turn in turns] == [
        ["Ada Lovelace"],
        ["Byron", "Ada Lovelace"],
        ["Byron", "Ada Lovelace"],
    ]
    assert source.given[2].entities == ("Byron", "Ada Lovelace")


async def test_the_users_own_meta_wins(store: AsyncStore) -> None:
    chat = store.conversation("ada")
    mine = {"entities": ["mine"], "user": 7}
    async with chat.turn("Ada?", context=Context(entities=Entities()), meta=mine) as turn:
        turn.reply("Yes?")
    assert (await chat.read()).turns[0].meta == mine


async def test_a_slow_source_is_too_late(store: AsyncStore) -> None:
    released = Event()

    def slow(_: Query) -> str:
        released.wait(30)
        return "too late"

    context = Context(sources=[Retrieval(slow, deadline=0.01), lambda _: "in time"])
    try:
        sent = await talk(store, "hi", context)
    finally:
        released.set()
    assert sent[0]["content"].endswith("in time")
    assert "too late" not in sent[0]["content"]
    assert context.counts == {"recall": 1}


async def test_a_strict_source_keeps_the_model_from_being_asked(store: AsyncStore) -> None:
    broken = Retrieval(Recorder(RuntimeError("down")), strict=True)
    with pytest.raises(RuntimeError, match="down"):
        await talk(store, "hi", Context(sources=[broken]))
    assert await store.conversation("ada").read() == []


async def test_functions_may_be_async_on_an_async_store(
    make_async_store: Callable[..., AsyncStore],
) -> None:
    async def vectors(texts: list[str]) -> list[list[float]]:
        return embed(texts)

    async def model(prompt: str) -> str:
        return prompt[-1:] and "rewritten"

    async def extract(text: str) -> list[str]:
        return [text[:3]]

    class Facts:
        async def __call__(self, query: Query, /) -> list[str]:
            return [f"{query.text} {query.entities[0]}"]

    told: list[Boundary] = []

    async def on_boundary(boundary: Boundary) -> None:
        told.append(boundary)

    context = Context(
        topics=Topics(vectors, on_boundary=on_boundary),
        rewrite=Rewrite(model),
        entities=Entities(extract),
        sources=[Facts()],
    )
    store = make_async_store()
    await talk(store, BOATS, context)
    assert (await talk(store, "more", context))[0]["content"].endswith("rewritten On")
    await talk(store, PIZZA, context)
    assert [boundary.turns for boundary in told] == [(1, 2)]
    assert context.counts == {}


def test_a_wrapped_client_has_the_context_in_each_step_of_a_tool_loop(
    make_store: Callable[..., Store],
) -> None:
    source, handed = Recorder("The harbour is at 5 m."), Recorder(None)
    context = Context(sources=[source], topics=Topics(embed), after=[handed], frame="<{texts}>")
    chat = make_store().conversation("ada")
    call = Reply.tool_call("depth")
    with ModelServer() as model, OpenAI(base_url=model.base_url, api_key="none") as openai:
        model.script(call, Reply("Deep."))
        client = chat.wrap(openai, context=context)
        answer = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": BOATS}]
        )
        calls = answer.choices[0].message.tool_calls
        assert calls
        client.chat.completions.create(
            model="m", messages=[{"role": "tool", "tool_call_id": calls[0].id, "content": "5"}]
        )
        injected = {"role": "system", "content": "<The harbour is at 5 m.>"}
        assert [request.messages[0] for request in model.requests] == [injected] * 2
    assert [query.text for query in source.given] == [BOATS] * 2
    assert [turn.recalled for turn in handed.given] == [(Recalled("The harbour is at 5 m."),)] * 2
    assert [message["role"] for message in chat.read()] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert len(chat.read().turns) == 1


def test_a_wrapped_client_of_responses_has_the_context_too(
    make_store: Callable[..., Store],
) -> None:
    context = Context(sources=[Recorder("A fact.")], entities=Entities(), frame="<{texts}>")
    chat = make_store().conversation("ada")
    with ModelServer() as model, OpenAI(base_url=model.base_url, api_key="none") as openai:
        client = chat.wrap(openai, context=context)
        client.responses.create(model="m", input="who was Ada Lovelace?")
        client.responses.create(model="m", input="and Byron?")
        sent = model.requests[1].messages
    assert sent[0] == {"role": "system", "content": "<A fact.>"}
    assert [item.get("role") for item in sent] == ["system", "user", "assistant", "user"]
    assert chat.read().turns[1].meta["entities"] == ["Byron", "Ada Lovelace"]
