"""What ours does beyond theirs: across runs, loops and threads, and where a run ends badly."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import railtracks as rt
from railtracks.exceptions import GlobalTimeOutError
from railtracks.llm import AssistantMessage, MessageHistory, SystemMessage, UserMessage

from tests.conformance.marks import ONE_SERVER
from tests.integrations.railtracks.model import Model, ask, heard
from tests.integrations.railtracks.test_like_theirs import HI, agent
from tests.leases.line import Queue
from tests.waiting import wait_until_async
from turnstore import FormatError, Lease, UnavailableError, Window
from turnstore.context import Context
from turnstore.integrations.railtracks import ConversationMemory

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncStore, Store

    Conversation = Callable[[str], Any]

pytestmark = ONE_SERVER


# The conversation


async def test_two_memories_with_one_key_are_one_conversation(conversation: Conversation) -> None:
    model = Model()
    for text in ("Hi", "And?"):
        await ask(agent(model, ConversationMemory(conversation, "ada")), text)
    assert model.heard == [*HI, ("user", "And?")]


async def test_the_key_may_depend_on_the_run(conversation: Conversation, store: AsyncStore) -> None:
    memory = ConversationMemory(conversation, lambda: rt.context.get("chat"))
    model = Model()
    node = agent(model, memory)
    for name in ("ada", "bob", "ada"):
        await ask(node, "Hi", context={"chat": name})
    assert len(model.heard) == 3
    assert [len(await store.conversation(name).turns()) for name in ("ada", "bob")] == [2, 1]


PAST = [UserMessage("My name is Ada."), AssistantMessage("Hello Ada.")]


async def test_what_is_seeded_comes_before_everything_once(conversation: Conversation) -> None:
    model, memory = Model(), ConversationMemory(conversation, "ada")
    seeded = await asyncio.gather(*(memory.seed([SystemMessage("!"), *PAST]) for _ in range(4)))
    assert sorted(seeded) == [False, False, False, True]
    await ask(agent(model, memory), "Hi")
    assert await memory.seed(PAST) is False
    assert heard(await memory.get_history()) == [*heard(PAST), *HI]
    assert await memory.clear() is True
    assert await memory.clear() is False
    assert await memory.seed([]) is False
    assert await memory.seed(PAST) is True


async def test_a_seed_in_the_context_does_not_begin_anew_with_each_flow(
    conversation: Conversation,
) -> None:
    model, memory = Model(), ConversationMemory(conversation, "ada")
    entry = agent(model, memory)
    flow: Any = rt.Flow("test", entry_point=entry, context={"ada": MessageHistory(PAST)})
    await flow.ainvoke("Hi")
    await flow.ainvoke("And?")
    assert model.heard == [*heard(PAST), *HI, ("user", "And?")]


async def test_a_seed_in_the_context_and_no_redis(new_store: NewStore, proxy: Proxy) -> None:
    chat: Any = new_store(at=proxy).conversation("ada")
    chat = getattr(chat, "_inner", chat)
    model, past = Model(), {"ada": MessageHistory(PAST)}
    proxy.go_down()
    with pytest.raises(UnavailableError):
        await ask(agent(model, ConversationMemory(lambda _: chat, "ada")), "Hi", context=past)
    assert model.asked == []
    memory = ConversationMemory(lambda _: chat, "ada", on_load_error="continue")
    assert (await ask(agent(model, memory), "Hi", context=past)).text == "Yes."


async def test_turns_of_another_format(conversation: Conversation, store: AsyncStore) -> None:
    await store.conversation("ada").append("Hello", format="openai.chat")
    memory = ConversationMemory(conversation, "ada")
    with pytest.raises(FormatError):
        await memory.get_history()
    with pytest.raises(FormatError):
        await ask(agent(Model(), memory), "Hi")
    model, memory = Model(), ConversationMemory(conversation, "ada", on_other_format="text")
    assert heard(await memory.get_history()) == [("user", "Hello")]
    await ask(agent(model, memory), "Hi")
    assert model.heard == [("user", "Hello"), ("user", "Hi")]


async def test_something_else_in_the_context_is_no_history(conversation: Conversation) -> None:
    model, memory = Model(), ConversationMemory(conversation, "ada")
    for other in ("ada", [], ["Hi"], {"a": 1}):
        await ask(agent(model, memory), "Hi", context={"ada": other})
        assert model.heard[0] == ("user", "Hi")
        await memory.clear()


# What surrounds it


async def test_what_other_middleware_adds_is_not_stored(
    conversation: Conversation, store: AsyncStore
) -> None:
    @rt.wrap_node
    async def handbook(call: Any, said: Any) -> Any:
        return await call([UserMessage("The office opens at nine."), *said])

    @rt.wrap_node
    async def newest(call: Any, said: Any) -> Any:
        return await call(said[-1:])

    for name, other in (("more", handbook), ("less", newest)):
        memory = ConversationMemory(conversation, name)
        node = rt.agent_node("Agent", llm=Model(), middleware=[memory, other])
        for text in ("Hi", "And?"):
            await ask(node, text)
        stored = await store.conversation(name).read(Window())
        assert [one["content"] for one in stored] == ["Hi", "Yes.", "And?", "Yes."]


async def test_an_agent_that_is_a_tool_has_its_own_memory(conversation: Conversation) -> None:
    inner = Model()
    memory = ConversationMemory(conversation, "inner")
    helper = rt.agent_node("Helper", llm=inner, system_message="Help.", middleware=[memory])
    name = helper.tool_info().name
    call = rt.llm.ToolCall(identifier="c1", name=name, arguments={"request": "Hi"})
    for _ in range(2):
        await ask(rt.agent_node("Boss", llm=Model([call]), tool_nodes=[helper]), "Ask them")
    assert [role for role, _ in inner.heard] == ["system", "user", "assistant", "user"]


async def test_a_function_that_gives_an_agents_answer_can_have_one(
    conversation: Conversation,
) -> None:
    model = Model()
    inner: Any = rt.agent_node("Agent", llm=model)

    @rt.function_node
    async def talk(text: Any) -> Any:
        return await rt.call(inner, text)

    node = rt.couple(talk, middleware=[ConversationMemory(conversation, "ada")])
    for text in ("Hi", "And?"):
        await ask(node, text)
    assert model.heard == [*HI, ("user", "And?")]


async def test_a_function_that_was_asked_nothing_keeps_its_answer(
    conversation: Conversation,
) -> None:
    inner: Any = rt.agent_node("Agent", llm=Model())

    @rt.function_node
    async def talk(text: Any) -> Any:
        return await rt.call(inner, text or "Hello?")

    node = rt.couple(talk, middleware=[ConversationMemory(conversation, "ada")])
    assert (await ask(node, [])).text == "Yes."


async def test_what_is_no_agents_answer_is_not_saved(
    conversation: Conversation, store: AsyncStore, caplog: pytest.LogCaptureFixture
) -> None:
    @rt.function_node
    async def shout(text: Any) -> str:
        return f"{text[-1].content}!"

    node = rt.couple(shout, middleware=[ConversationMemory(conversation, "ada")])
    assert await ask(node, "Hi") == "Hi!"
    assert await store.conversation("ada").turns() == []
    assert "no answer of an agent" in caplog.text


# How a run ends


async def test_a_run_that_nobody_waits_for_any_more_saves_nothing(
    conversation: Conversation, store: AsyncStore, caplog: pytest.LogCaptureFixture
) -> None:
    hold = threading.Event()

    def late() -> str:
        hold.wait(20)
        return "Too late."

    node = agent(Model(late), ConversationMemory(conversation, "ada"))
    with pytest.raises(GlobalTimeOutError):
        await ask(node, "Hi", timeout=0.05)
    hold.set()
    await wait_until_async(lambda: "the session has ended" in caplog.text)
    assert await store.conversation("ada").turns() == []


async def test_many_in_one_flow_lose_nothing(conversation: Conversation, store: AsyncStore) -> None:
    node = agent(Model(), ConversationMemory(conversation, "ada"))
    said = [f"I am number {n}." for n in range(8)]

    @rt.function_node
    async def talk() -> Any:
        return await rt.call_batch(node, said)

    answers = await ask(talk)
    assert [answer.text for answer in answers] == ["Yes."] * 8
    turns = await store.conversation("ada").turns()
    assert sorted(turn.messages[0]["content"] for turn in turns) == said


async def test_turns_that_wait_leave_a_thread_for_the_one_that_does_not(
    conversation: Conversation,
) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    model = Model()
    lease = Lease(waiters=16, wait=timedelta(seconds=60))
    memory = ConversationMemory(conversation, "ada", on_conflict="serialize", lease=lease)
    await asyncio.gather(*(ask(agent(model, memory), str(n)) for n in range(4)))
    assert [len(messages) for messages in model.asked] == [1, 3, 5, 7]


async def test_a_run_that_is_cancelled_while_it_waits_gives_its_place_back(
    conversation: Conversation, store: AsyncStore, server: Server
) -> None:
    chat = store.conversation("ada")
    queue = Queue(server, chat)
    memory = ConversationMemory(conversation, "ada", on_conflict="serialize")
    async with chat.turn("first", on_conflict="serialize", format="railtracks") as turn:
        waiting = asyncio.create_task(_called(memory, "second"))
        await wait_until_async(lambda: queue.waiting == 1)
        waiting.cancel()
        turn.reply("Yes.")
    with pytest.raises(asyncio.CancelledError) as caught:  # whose frames keep the turn
        await waiting
    assert not queue.line.held
    assert caught.tb is not None
    assert len(await chat.turns()) == 1


async def _called(memory: ConversationMemory, *said: str) -> None:
    async def never(*_: Any) -> Any:
        raise AssertionError

    await memory.wrap(never)(*said)


# Without a loop


def test_flows_without_a_loop_of_their_own(make_store: Callable[..., Store]) -> None:
    store, model = make_store(), Model()
    memory = ConversationMemory(store.conversation, "ada")
    flow: Any = rt.Flow("test", entry_point=agent(model, memory))
    for text in ("Hi", "And?"):
        flow.invoke(text)
    assert model.heard == [*HI, ("user", "And?")]
    assert len(asyncio.run(memory.get_history())) == 4


# Options


async def test_what_is_no_use_is_refused(conversation: Conversation, store: AsyncStore) -> None:
    wrong: Any
    for wrong in (None, store, store.conversation("ada")):
        with pytest.raises(TypeError, match="function of a key"):
            ConversationMemory(wrong)
    for wrong in (3, b"ada"):
        with pytest.raises(TypeError, match="context_key"):
            ConversationMemory(conversation, wrong)
    for wrong in ("5", 1.5, True):
        with pytest.raises(TypeError, match="max_messages"):
            ConversationMemory(conversation, max_messages=wrong)
    for more in ({"window": Window()}, {"context": Context()}):
        with pytest.raises(ValueError, match="max_messages"):
            ConversationMemory(conversation, max_messages=3, **more)
    with pytest.raises(ValueError, match="on_conflict"):
        ConversationMemory(conversation, on_conflict="wait")  # type: ignore[arg-type]  # as said


async def test_what_a_run_cannot_use_is_refused(conversation: Conversation) -> None:
    for wrong in (lambda _: None, lambda key: key):
        memory = ConversationMemory(wrong)  # type: ignore[arg-type]  # as said
        with pytest.raises(TypeError, match="conversation of a store"):
            await ask(agent(Model(), memory), "Hi")
    memory = ConversationMemory(conversation, lambda: " ")
    with pytest.raises(ValueError, match="context_key"):
        await ask(agent(Model(), memory), "Hi")
    memory = ConversationMemory(conversation)
    model = Model()
    for said in (5, [5], {"role": "robot", "content": "Hi"}, None):
        with pytest.raises((TypeError, ValueError)):
            await ask(agent(model, memory), said)
    with pytest.raises(TypeError, match="user_input"):
        await _called(memory)
    assert model.asked == []
