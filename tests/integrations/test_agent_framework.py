"""What is particular to Microsoft's Agent Framework."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)
from agent_framework.openai import OpenAIChatClient
from openai import AsyncOpenAI

from tests.servers.found import servers
from turnstore import Store
from turnstore.integrations.agent_framework import HistoryProvider
from turnstore.testing import ModelServer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from turnstore import AsyncStore

pytestmark = [pytest.mark.servers(servers()[0].name), pytest.mark.one_setup]


@pytest.fixture
def store(make_async_store: Callable[..., AsyncStore]) -> AsyncStore:
    return make_async_store()


class Model(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """Answers with what it was given, one after the other, then with `Yes.`."""

    def __init__(self, *replies: Message, finish: str | None = "stop") -> None:
        super().__init__()
        self.replies = list(replies)
        self.finish = finish
        self.asked: list[list[Message]] = []

    async def _inner_get_response(
        self,
        *,
        messages: Sequence[Message],
        stream: bool,
        options: Mapping[str, Any],
        **kwargs: Any,
    ) -> ChatResponse:
        del stream, options, kwargs
        self.asked.append(list(messages))
        reply = self.replies.pop(0) if self.replies else Message("assistant", ["Yes."])
        finish: Any = self.finish
        return ChatResponse(messages=[reply], finish_reason=finish)


def session(name: str = "ada") -> AgentSession:
    return AgentSession(session_id=name)


async def test_contents_come_back_as_they_were(store: AsyncStore) -> None:
    odd = Message(
        "assistant",
        [
            Content.from_text_reasoning(text="hm", protected_data="s/+="),
            Content.from_text("\x00 \u2028 é", additional_properties={"zz": [1.0, 2**70, None]}),
        ],
        message_id="m",
        additional_properties={"x": {"y": None}},
    )
    model = Model(odd)
    agent = Agent(model, context_providers=[HistoryProvider(store.conversation)])
    answer = await agent.run("Hi", session=session())
    (turn,) = await store.conversation("ada").turns()
    assert turn.messages[1:] == [message.to_dict() for message in answer.messages]
    assert turn.format == "agent_framework"
    await agent.run("And?", session=session())
    (back,) = [one for one in model.asked[-1] if one.role == "assistant"]
    assert [content.to_dict() for content in back.contents] == turn.messages[1]["contents"]


async def test_sessions_are_conversations(store: AsyncStore) -> None:
    agent = Agent(Model(), context_providers=[HistoryProvider(store.conversation)])
    for name in ("ada", "bob", "ada"):
        await agent.run("Hi", session=session(name))
    assert [len(await store.conversation(name).turns()) for name in ("ada", "bob")] == [2, 1]


async def test_what_other_providers_add_is_not_stored(store: AsyncStore) -> None:
    class Handbook(HistoryProvider):
        async def before_run(self, *, context: Any, **kwargs: Any) -> None:
            del kwargs
            context.extend_messages(self, [Message("user", ["The office opens at nine."])])

        async def after_run(self, **kwargs: Any) -> None:
            del kwargs

    model = Model()
    providers = [HistoryProvider(store.conversation), Handbook(store.conversation, "handbook")]
    agent = Agent(model, context_providers=providers)
    for _ in range(2):
        await agent.run("When?", session=session())
        assert "".join(one.text for one in model.asked[-1]).count("at nine") == 1
    assert "at nine" not in str(await store.conversation("ada").read())


async def test_no_finish_reason_is_not_saved_unless_it_may_be(
    store: AsyncStore, caplog: pytest.LogCaptureFixture
) -> None:
    chat = store.conversation("ada")
    agent = Agent(Model(finish=None), context_providers=[HistoryProvider(store.conversation)])
    with caplog.at_level(logging.WARNING):
        await agent.run("Hi", session=session())
    assert "no finish reason" in caplog.text
    assert await chat.read() == []
    provider = HistoryProvider(store.conversation, needs_finish_reason=False)
    await Agent(Model(finish=None), context_providers=[provider]).run("Hi", session=session())
    assert len(await chat.read()) == 2


async def test_an_approval_continues_its_turn(store: AsyncStore) -> None:
    @tool(approval_mode="always_require")
    def delete(name: str) -> str:
        """Delete it."""
        return f"{name} is gone"

    call = Content.from_function_call("c", "delete", arguments={"name": "x"})
    model = Model(Message("assistant", [call]))
    provider = HistoryProvider(store.conversation)
    agent = Agent(model, tools=[delete], context_providers=[provider])
    first = session()
    asked = await agent.run("Delete x", session=first)
    (request,) = asked.user_input_requests
    # The framework keeps in the session what it waits for.
    second = AgentSession.from_dict(json.loads(json.dumps(first.to_dict())))
    approval = request.to_function_approval_response(approved=True)
    done = await agent.run(Message("user", [approval]), session=second)
    assert done.text == "Yes."
    assert "x is gone" in str([one.to_dict() for one in model.asked[-1]])
    await agent.run("Thanks", session=session())
    sent = str([one.to_dict() for one in model.asked[-1]])
    assert sent.count("Delete x") == 1
    assert sent.count("'x is gone'") >= 1


async def test_the_primitives_alone(store: AsyncStore) -> None:
    provider = HistoryProvider(store.conversation)
    said = [Message("system", ["Be brief."]), Message("user", ["Hi"])]
    await provider.save_messages("ada", said)
    assert [one.text for one in await provider.get_messages("ada")] == ["Hi"]
    with pytest.raises(ValueError, match="session"):
        await provider.get_messages(None)


async def test_what_is_refused(store: AsyncStore) -> None:
    policy: Any = "serialize"
    with pytest.raises(ValueError, match="lease"):
        HistoryProvider(store.conversation, on_conflict=policy)
    given: Any = store
    with pytest.raises(TypeError, match=r"store\.conversation"):
        HistoryProvider(given)
    with Store.from_url("redis://localhost:1", name="test") as sync:
        find: Any = sync.conversation
        with pytest.raises(TypeError, match="AsyncStore"):
            await HistoryProvider(find).get_messages("ada")


async def test_a_save_for_each_call_of_the_model(store: AsyncStore) -> None:
    @tool(approval_mode="never_require")
    def weather(city: str) -> str:
        """Tell the weather."""
        return f"21 degrees in {city}"

    call = Content.from_function_call("c", "weather", arguments={"city": "Rome"})
    model = Model(Message("assistant", [call]))
    agent = Agent(
        model,
        tools=[weather],
        context_providers=[HistoryProvider(store.conversation)],
        require_per_service_call_history_persistence=True,
    )
    await agent.run("How warm?", session=session())
    (turn,) = await store.conversation("ada").turns()
    assert [message["role"] for message in turn.messages] == [
        "user", "assistant", "tool", "assistant"
    ]  # fmt: skip
    await agent.run("Thanks", session=session())
    assert [one.role for one in model.asked[-1]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]


@pytest.mark.parametrize("store_there", [None, False])
async def test_a_service_that_stores_by_default_is_told_not_to(
    store: AsyncStore, *, store_there: bool | None
) -> None:
    """Its id is then in the session, and the next run with that session is refused."""
    with ModelServer() as model:
        async with AsyncOpenAI(base_url=model.base_url, api_key="none", max_retries=0) as opened:
            client = OpenAIChatClient(model="m", async_client=opened)
            agent = Agent(client, context_providers=[HistoryProvider(store.conversation)])
            one = session()
            options: Any = {"store": store_there}
            await agent.run("My name is Ada.", session=one, options=options)
            if store_there is None:
                with pytest.raises(ValueError, match=r"service_session_id.*store"):
                    await agent.run("What is my name?", session=one, options=options)
            else:
                answer = await agent.run("What is my name?", session=one, options=options)
                assert answer.text == "Your name is Ada."
            answer = await agent.run("What is my name?", session=session(), options=options)
            assert answer.text == "Your name is Ada."
        assert len(model.requests[-1].messages) == (3 if store_there is None else 5)
