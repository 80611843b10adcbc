"""What Railtracks' own ConversationMemory does, ours does, too: each test runs on both."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest
import railtracks as rt
from pydantic import BaseModel
from railtracks.llm import (
    AssistantMessage,
    MessageHistory,
    SystemMessage,
    ToolCall,
    UserMessage,
)
from railtracks.prebuilt.middleware import ConversationMemory as Theirs

from tests.conformance.marks import ONE_SERVER
from tests.integrations.railtracks.model import Model, ask, heard
from turnstore.integrations.railtracks import ConversationMemory

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[..., Any]

pytestmark = ONE_SERVER


@pytest.fixture(params=["theirs", "ours"])
def make(request: pytest.FixtureRequest, conversation: Callable[[str], Any]) -> Make:
    """Make memories of either kind."""
    if request.param == "theirs":
        return Theirs
    return lambda *args, **options: ConversationMemory(conversation, *args, **options)


async def given(value: Any) -> Any:
    """Await what ours gives; theirs is there already."""
    return await value if inspect.isawaitable(value) else value


def agent(model: Model, memory: Any, **options: Any) -> Any:
    return rt.agent_node("Agent", llm=model, middleware=[memory], **options)


HI = [("user", "Hi"), ("assistant", "Yes.")]


async def test_what_was_said_is_sent_with_the_next_input(make: Make) -> None:
    model, memory = Model(), make()
    await ask(agent(model, memory), "Hi")
    answer = await ask(agent(model, memory), "And?")
    assert model.heard == [*HI, ("user", "And?")]
    assert answer.text == "Yes."
    assert heard(answer.message_history) == [*HI, ("user", "And?"), ("assistant", "Yes.")]


async def test_a_memory_without_a_key_is_its_own(make: Make) -> None:
    model, first, second = Model(), make(), make()
    assert first.context_key != second.context_key
    await ask(agent(model, first), "Hi")
    await ask(agent(model, second), "Who am I?")
    assert model.heard == [("user", "Who am I?")]


async def test_a_key_is_a_key(make: Make) -> None:
    assert make("shared").context_key == "shared"
    for blank in ("", "  "):
        with pytest.raises(ValueError, match="context_key"):
            make(blank)


async def test_two_memories_with_one_key_share_it_in_a_flow(make: Make) -> None:
    model = Model()
    first, second = agent(model, make("shared")), agent(model, make("shared"))

    @rt.function_node
    async def talk(text: str) -> None:
        await rt.call(first, text)
        await rt.call(second, "And?")

    await ask(talk, "Hi")
    assert model.heard == [*HI, ("user", "And?")]


async def test_agents_can_share_one_memory(make: Make) -> None:
    model, memory = Model(), make()
    await ask(agent(model, memory), "Hi")
    await ask(agent(model, memory), "And?")
    assert model.heard == [*HI, ("user", "And?")]


async def test_a_history_in_the_context_comes_first(make: Make) -> None:
    model, memory = Model(), make("seeded")
    past = MessageHistory([UserMessage("My name is Ada."), AssistantMessage("Hello Ada.")])
    await ask(agent(model, memory), "Who am I?", context={"seeded": past})
    assert model.heard == [*heard(past), ("user", "Who am I?")]
    assert len(await given(memory.get_history())) == 4


async def test_the_history_can_be_looked_at(make: Make) -> None:
    memory = make()
    assert not await given(memory.get_history())
    await ask(agent(Model(), memory), "Hi")
    history = await given(memory.get_history())
    assert isinstance(history, MessageHistory)
    assert heard(history) == HI


async def test_a_cleared_memory_is_empty(make: Make) -> None:
    model, memory = Model(), make()
    await ask(agent(model, memory), "Hi")
    await given(memory.clear())
    assert not await given(memory.get_history())
    await ask(agent(model, memory), "And?")
    assert model.heard == [("user", "And?")]
    await given(memory.clear())
    await given(memory.clear())


@pytest.mark.parametrize("limit", [None, 0])
async def test_no_limit(make: Make, limit: int | None) -> None:
    model, memory = Model(), make(max_messages=limit)
    for n in range(4):
        await ask(agent(model, memory), str(n))
    assert len(model.heard) == 7


async def test_a_limit_drops_the_oldest(make: Make) -> None:
    model, memory = Model(), make(max_messages=4)
    for n in range(6):
        await ask(agent(model, memory), str(n))
    assert len(await given(memory.get_history())) == 4
    assert ("user", "2") not in model.heard
    assert model.heard[-3:] == [("user", "4"), ("assistant", "Yes."), ("user", "5")]


async def test_a_limit_below_nothing_is_refused(make: Make) -> None:
    with pytest.raises(ValueError, match="max_messages"):
        make(max_messages=-1)


async def test_a_history_that_is_handed_back_is_not_doubled(make: Make) -> None:
    model, memory = Model(), make()
    answer = await ask(agent(model, memory), "Hi")
    back = answer.message_history
    for kind in (list, MessageHistory):
        back = kind([*back, UserMessage("And?")])
        answer = await ask(agent(model, memory), back)
        assert model.heard == heard(back)
        back = answer.message_history
    assert heard(await given(memory.get_history())) == heard(back)


async def test_a_history_that_is_handed_back_alone_is_not_doubled(make: Make) -> None:
    model, memory = Model(), make()
    answer = await ask(agent(model, memory), "Hi")
    await ask(agent(model, memory), answer.message_history)
    assert model.heard == HI
    assert heard(await given(memory.get_history())) == [*HI, ("assistant", "Yes.")]


async def test_a_run_that_fails_leaves_the_history_as_it_was(make: Make) -> None:
    model, memory = Model("Yes.", ValueError("scripted error")), make()
    await ask(agent(model, memory), "Hi")
    with pytest.raises(Exception, match="scripted error"):
        await ask(agent(model, memory), "Fail")
    assert heard(await given(memory.get_history())) == HI
    await ask(agent(model, memory), "And?")
    assert model.heard == [*HI, ("user", "And?")]


def call(identifier: str) -> ToolCall:
    return ToolCall(identifier=identifier, name="weather", arguments={"city": "Rome"})


@rt.function_node
def weather(city: str) -> str:
    """Tell the weather.

    Args:
        city (str): Where.
    """
    return f"21 degrees in {city}"


async def test_tool_calls_come_back_with_their_results(make: Make) -> None:
    model, memory = Model([call("c1"), call("c2")]), make()
    await ask(agent(model, memory, tool_nodes=[weather]), "How warm?")
    await ask(agent(model, memory, tool_nodes=[weather]), "Thanks")
    assert [role for role, _ in model.heard] == [
        *["user", "assistant", "tool", "tool", "assistant"],
        "user",
    ]
    _, calls, first, second, *_ = model.asked[-1]
    assert calls.content == [call("c1"), call("c2")]
    assert [one.content.identifier for one in (first, second)] == ["c1", "c2"]
    assert first.content.result == "21 degrees in Rome"


@pytest.mark.parametrize(
    "said", ["Hi", UserMessage("Hi"), [UserMessage("Hi")], MessageHistory([UserMessage("Hi")])]
)
@pytest.mark.parametrize("named", [False, True])
async def test_every_form_of_input(make: Make, *, said: Any, named: bool) -> None:
    model, memory = Model(), make()
    for _ in range(2):
        if named:
            await ask(agent(model, memory), user_input=said)
        else:
            await ask(agent(model, memory), said)
    assert model.heard == [*HI, ("user", "Hi")]


async def test_the_system_message_of_an_agent_is_sent_once(make: Make) -> None:
    model, memory = Model(), make()
    for text in ("Hi", "And?"):
        await ask(agent(model, memory, system_message="Be brief."), text)
    assert model.heard == [("system", "Be brief."), *HI, ("user", "And?")]
    assert heard(await given(memory.get_history()))[:2] == HI


async def test_a_node_that_gets_more_middleware_keeps_its_memory(make: Make) -> None:
    @rt.wrap_node
    async def other(call: Any, *args: Any, **kwargs: Any) -> Any:
        return await call(*args, **kwargs)

    model, memory = Model(), make()
    node = agent(model, memory)
    await ask(node, "Hi")
    await ask(rt.couple(node, middleware=[other]), "And?")
    assert model.heard == [*HI, ("user", "And?")]
    assert len(await given(memory.get_history())) == 4


async def test_placeholders_are_kept_as_they_were_filled(make: Make) -> None:
    model, memory = Model(), make()
    injection: Any = rt.prebuilt.middleware.ContextInjection
    node = agent(model, memory, model_middleware=[injection()])
    await ask(node, "I am {name}.", context={"name": "Ada"})
    await ask(node, "And {name}?", context={"name": "Bob"})
    assert model.heard == [("user", "I am Ada."), ("assistant", "Yes."), ("user", "And Bob?")]


class City(BaseModel):
    name: str
    size: float = 1.0


async def test_a_structured_answer_is_sent_as_its_text(make: Make) -> None:
    model, memory = Model(City(name="Rome"), City(name="Oslo")), make()
    node = agent(model, memory, output_schema=City)
    assert (await ask(node, "Where?")).structured == City(name="Rome")
    await ask(node, "And?")
    llm = rt.llm.OpenAICompatibleProvider("m", api_base="http://none.invalid", api_key="none")
    sent = [llm._to_litellm_message(message) for message in model.asked[-1]]
    assert sent[1] == {"role": "assistant", "content": '{"name":"Rome","size":1.0}'}


async def test_instructions_in_the_input_reach_the_model(make: Make) -> None:
    model = Model()
    await ask(agent(model, make()), [SystemMessage("Be brief."), UserMessage("Hi")])
    assert model.heard == [("system", "Be brief."), ("user", "Hi")]
