"""Google's client with a memory: the SDK's automatic function calling, and its chats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.genai import errors, types

from tests.integrations.google.talking import ask, body, said, stream, user, weather
from turnstore import Window
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from google.genai import Client

    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.setups import Setup
    from turnstore import AsyncConversation, Conversation

pytestmark = [pytest.mark.servers("redis-8", "redis-url"), pytest.mark.one_setup]

CALLED = Reply.tool_call("weather", city="Rome")


def roles(chat: Conversation) -> list[list[str]]:
    return [[message["role"] for message in turn.messages] for turn in chat.turns()]


class TestAutomaticCalling:
    @pytest.mark.parametrize("say", [ask, stream])
    def test_all_of_it_is_one_turn(
        self, ada: Any, chat: Conversation, model: ModelServer, say: Any
    ) -> None:
        ask(ada, "Hello")
        model.script(CALLED, CALLED)
        assert said(say(ada, "Warm?", tools=[weather])).endswith("21 degrees in Rome")
        assert roles(chat) == [["user", "model"], ["user", "model"] * 3]
        # What the SDK sent back of the model's was its own object; the provider gets its JSON.
        assert "thoughtSignature" in chat.read()[-3]["parts"][0]
        assert model.requests[-1].messages == chat.read()[:-1]
        used = [turn.meta["usage"]["promptTokenCount"] for turn in chat.turns()]
        assert used[1] > 3 * used[0]

    async def test_one_load_and_one_save(
        self, new_store: NewStore, proxy: Proxy, base: Client, model: ModelServer, setup: Setup
    ) -> None:
        chat: Any = new_store(at=proxy).conversation("ada")
        ada = chat.wrap(base)
        for _ in range(2):
            proxy.clear()
            model.script(CALLED)
            asking: Any = {"model": "m", "contents": "Warm?", "config": {"tools": [weather]}}
            if setup.client == "sync":
                ada.models.generate_content(**asking)
            else:
                await ada.aio.models.generate_content(**asking)
        assert (proxy.count("LRANGE"), proxy.count("EVALSHA")) == (1, 1)

    @pytest.mark.parametrize("say", [ask, stream])
    def test_a_loop_that_fails_leaves_nothing(
        self, ada: Any, chat: Conversation, model: ModelServer, say: Any
    ) -> None:
        model.script(CALLED, Reply.error(400))
        with pytest.raises(errors.ClientError):
            say(ada, "Warm?", tools=[weather])
        model.script(CALLED, Reply("x", finish="SAFETY"))
        say(ada, "Warm?", tools=[weather])
        call = {"functionCall": {"name": "weather", "args": {"city": "Rome"}}}
        filtered = body(call, finish="SAFETY")  # the SDK calls it all the same
        model.script(Reply(body=filtered, events=[filtered]))
        assert said(say(ada, "Warm?", tools=[weather])).endswith("21 degrees in Rome")
        assert chat.read() == []

    def test_a_call_that_was_not_to_be_made_is_answered_later(
        self, ada: Any, chat: Conversation, model: ModelServer
    ) -> None:
        model.script(CALLED)
        limit = types.AutomaticFunctionCallingConfig(maximum_remote_calls=1)
        ask(ada, "Warm?", tools=[weather], automatic_function_calling=limit)
        assert roles(chat) == [["user", "model"]]
        result = types.Part.from_function_response(name="weather", response={"result": "21"})
        assert said(ask(ada, result)) == "The tool says: 21"
        assert roles(chat) == [["user", "model"] * 2]

    def test_a_function_that_raises_is_the_sdks_affair(
        self, ada: Any, chat: Conversation, model: ModelServer
    ) -> None:
        def weather(city: str) -> str:
            raise RuntimeError(f"not {city}")

        model.script(CALLED)
        assert said(ask(ada, "Warm?", tools=[weather])).endswith("not Rome")
        assert "not Rome" in chat.read()[2]["parts"][0]["functionResponse"]["response"]["error"]


class TestChats:
    def test_the_history_is_that_of_the_conversation(
        self, ada: Any, chat: Conversation, base: Client, model: ModelServer
    ) -> None:
        mine, other = ada.chats.create(model="m"), chat.wrap(base).chats.create(model="m")
        assert isinstance(mine, type(base.chats.create(model="m")))
        mine.send_message("My name is Ada.")
        assert said(other.send_message("What is my name?")) == "Your name is Ada."
        assert said(list(mine.send_message_stream("And what is my name?"))) == "Your name is Ada."
        assert model.requests[-1].messages == [*chat.read()[:-2], user("And what is my name?")]
        assert len(model.requests[-1].messages) == 5
        assert [len(turn.messages) for turn in chat.turns()] == [2, 2, 2]
        # What was said in it, a chat tells as ever; a stream in pieces.
        assert [one.role for one in mine.get_history()][:3] == ["user", "model", "user"]

    def test_what_a_chat_keeps_and_the_conversation_does_not_is_not_sent(
        self, ada: Any, chat: Conversation, model: ModelServer
    ) -> None:
        talk = ada.chats.create(model="m")
        model.script(Reply("No.", finish="SAFETY"))
        talk.send_message("Something bad")
        assert len(talk.get_history(curated=True)) == 2  # the SDK takes any text for an answer
        talk.send_message("Something good")
        assert model.requests[-1].messages == [user("Something good")]
        assert [turn.messages[0] for turn in chat.turns()] == [user("Something good")]

    def test_what_the_conversation_keeps_and_a_chat_does_not_is_sent(
        self, ada: Any, chat: Conversation, model: ModelServer
    ) -> None:
        talk = ada.chats.create(model="m")
        model.script(Reply(fields={"parts": [{"thingOf2031": 1}, {"text": "Hi"}]}))
        talk.send_message("Hello")
        assert talk.get_history(curated=True) == []  # a part that the SDK does not know is empty
        talk.send_message("Again")
        assert [one["role"] for one in model.requests[-1].messages] == ["user", "model", "user"]
        assert len(chat.turns()) == 2

    def test_a_window(self, chat: Conversation, base: Client, model: ModelServer) -> None:
        talk = chat.wrap(base, window=Window(turns=1)).chats.create(model="m")
        for n in range(4):
            talk.send_message(f"number {n}")
        assert [one["parts"][0]["text"] for one in model.requests[-1].messages][::2] == [
            "number 2",
            "number 3",
        ]

    @pytest.mark.parametrize("streamed", [False, True])
    def test_tools(
        self, ada: Any, chat: Conversation, model: ModelServer, *, streamed: bool
    ) -> None:
        talk = ada.chats.create(model="m", config=types.GenerateContentConfig(tools=[weather]))
        for _ in range(2):
            model.script(CALLED)
            say = talk.send_message_stream if streamed else talk.send_message
            reply = list(say("Warm?")) if streamed else say("Warm?")
            assert said(reply).endswith("21 degrees in Rome")
        assert roles(chat) == [["user", "model"] * 2] * 2
        assert model.requests[-1].messages == chat.read()[:-1]

    def test_a_history_of_its_own_is_refused(self, ada: Any, base: Client) -> None:
        past: Any = [types.UserContent("Hello"), types.ModelContent("Hi")]
        for half in (ada, ada.aio):
            with pytest.raises(ValueError, match=r"conversation\.append\(history"):
                half.chats.create(model="m", history=past)
            assert half.chats.create(model="m", history=[]).get_history() == []
        assert len(base.chats.create(model="m", history=past).get_history()) == 2

    def test_a_conversation_begins_with_what_was_appended(
        self, ada: Any, chat: Conversation
    ) -> None:
        past: Any = [types.UserContent("My name is Ada."), types.ModelContent("Hi")]
        chat.append(past, format="google.contents")
        talk = ada.chats.create(model="m")
        assert said(talk.send_message("What is my name?")) == "Your name is Ada."

    async def test_async_chats(
        self, async_chat: AsyncConversation, base: Client, model: ModelServer
    ) -> None:
        ada = async_chat.wrap(base)

        async def weather(city: str) -> str:
            """Say how warm it is."""
            return f"22 degrees in {city}"

        config = types.GenerateContentConfig(tools=[weather])
        talk = ada.aio.chats.create(model="m", config=config)
        await talk.send_message("My name is Ada.")
        model.script(CALLED)
        assert said(await talk.send_message("Warm?")) == "The tool says: 22 degrees in Rome"
        chunks = await talk.send_message_stream("What is my name?")
        assert said([chunk async for chunk in chunks]) == "Your name is Ada."
        assert [len(turn.messages) for turn in await async_chat.turns()] == [2, 4, 2]
        assert len(model.requests[-1].messages) == 7
