"""Messages are changed before they are stored, and nowhere else."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.context.folds import Echo, echoing
from tests.store.talk import texts
from turnstore import AsyncStore, LimitError, SaveError, Store, Window
from turnstore.context import Context, Entities

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.servers.running import Server
    from tests.servers.setups import Setup
    from turnstore import AsyncConversation

Messages = list[dict[str, Any]]

# test_setups.py of the store looks at a turn with every protocol and decoding.
pytestmark = pytest.mark.one_setup

_NAME = re.compile("Ada|Lovelace")


def masked(messages: Messages) -> Messages:
    """Hide names wherever they are; changes what it is given, as functions do."""
    for message in messages:
        for name, value in message.items():
            message[name] = json.loads(_NAME.sub("<name>", json.dumps(value)))
    return messages


async def amasked(messages: Messages) -> Messages:
    await asyncio.sleep(0)
    return masked(messages)


@pytest.fixture
def redact(setup: Setup) -> Callable[..., Any]:
    """Give a function, an async one in some of the setups that take one."""
    return amasked if setup.client == "async" and setup.protocol == 3 else masked


@pytest.fixture(params=[None, "ada"], ids=["nobodys", "owned"])
def chat(request: pytest.FixtureRequest, new_store: NewStore, redact: Any) -> AsyncConversation:
    return new_store(redact=redact).conversation("c", owner=request.param)


def leaks(server: Server, chat: AsyncConversation) -> list[bytes]:
    """Give what is stored of the conversation and tells the name."""
    tag = chat.key.removesuffix("turns")
    held = [*server.raw.lrange(chat.key, 0, -1), server.raw.get(f"{tag}summary") or b""]
    return [item for item in held if b"Ada" in item or b"Lovelace" in item]


async def test_an_append(chat: AsyncConversation, server: Server) -> None:
    messages: Messages = [
        {"role": "user", "content": "I am Ada.", "name": "Ada"},
        {"role": "user", "content": [{"type": "text", "text": "Ada Lovelace"}]},
    ]
    kept = json.loads(json.dumps(messages))
    await chat.append(messages)
    assert messages == kept, "what the caller has stays"
    assert await chat.read() == [
        {"role": "user", "content": "I am <name>.", "name": "<name>"},
        {"role": "user", "content": [{"type": "text", "text": "<name> <name>"}]},
    ]
    assert leaks(server, chat) == []


async def test_a_turn(chat: AsyncConversation, server: Server) -> None:
    async with chat.turn("I am Ada.") as turn:
        assert texts(turn.messages) == ["I am Ada."], "the model is told"
        turn.reply("Hello Ada!")
        assert texts(turn.messages) == ["I am Ada.", "Hello Ada!"]
        assert texts(turn.new) == ["I am Ada.", "Hello Ada!"]
    async with chat.turn("Who am I?") as turn:
        assert texts(turn.messages) == ["I am <name>.", "Hello <name>!", "Who am I?"]
        turn.reply("I was told not to know.")
    assert leaks(server, chat) == []


async def test_a_wrapped_function(chat: AsyncConversation, setup: Any, server: Server) -> None:
    sent: list[Messages] = []

    def model(messages: Messages) -> str:
        sent.append(messages)
        return "Hello Ada!"

    async def amodel(messages: Messages) -> str:
        return model(messages)

    if setup.client == "async":
        assert await chat.wrap(amodel)([{"role": "user", "content": "I am Ada."}]) == "Hello Ada!"
    else:
        function: Any = chat.wrap(model)
        assert function([{"role": "user", "content": "I am Ada."}]) == "Hello Ada!"
    assert texts(sent[0]) == ["I am Ada."]
    assert texts(await chat.read()) == ["I am <name>.", "Hello <name>!"]
    assert leaks(server, chat) == []


CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "call-1",
            "type": "function",
            "function": {"name": "find", "arguments": '{"who":"Ada"}'},
        }
    ],
}
RESULT = {"role": "tool", "tool_call_id": "call-1", "content": "Ada lives in London."}


async def test_what_is_sent_again_is_recognised(chat: AsyncConversation, server: Server) -> None:
    """A tool loop that is written by hand sends all of it with each call."""
    said: Messages = [{"role": "user", "content": "Where does Ada live?"}]
    for reply in (CALL, {"role": "assistant", "content": "Ada lives in London."}):
        async with chat.turn(said) as turn:
            turn.reply(reply)
        said.append(reply)
        if reply is CALL:
            said.append(RESULT)
    said.append({"role": "user", "content": "Thank you, says Ada."})
    async with chat.turn([{"role": "system", "content": "Be kind to Ada."}, *said]) as turn:
        sent = turn.messages
        turn.reply("You are welcome.")
    assert [message["role"] for message in sent] == [
        *("system", "user", "assistant", "tool", "assistant", "user"),
    ]
    assert sent[0]["content"] == "Be kind to Ada."
    assert sent[-1]["content"] == "Thank you, says Ada.", "what is new, as it is"
    assert sent[1]["content"] == "Where does <name> live?", "what is stored, as that is"
    assert (await chat.stat()).messages == 6
    assert leaks(server, chat) == []


async def test_what_is_sent_again_and_stands_before_the_window(chat: AsyncConversation) -> None:
    said: Messages = []
    for number in range(6):
        said += [
            {"role": "user", "content": f"Ada {number}"},
            {"role": "assistant", "content": f"Lovelace {number}"},
        ]
        await chat.append(said[-2:])
    async with chat.turn([*said, {"role": "user", "content": "new"}], window=Window(turns=2)) as t:
        assert texts(t.messages) == [
            *("<name> 4", "<name> 4", "<name> 5", "<name> 5", "new"),
        ]
        t.reply("ok")
    assert (await chat.stat()).messages == 14


async def test_the_same_words_twice_are_said_twice(chat: AsyncConversation) -> None:
    for _ in range(2):
        async with chat.turn("I am Ada.") as turn:
            turn.reply("Hello Ada!")
    assert (await chat.stat()).messages == 4


async def test_a_repetition_is_stored_once(chat: AsyncConversation) -> None:
    for _ in range(2):
        async with chat.turn("I am Ada.", turn_id="t") as turn:
            turn.reply("Hello Ada!")
        await chat.append("Ada", turn_id="u")
    assert texts(await chat.read()) == ["I am <name>.", "Hello <name>!", "<name>"]


async def test_counts_and_limits_are_of_what_is_stored(new_store: NewStore, redact: Any) -> None:
    counted: list[Any] = []

    def count(message: dict[str, Any]) -> int:
        counted.append(message["content"])
        return len(message["content"])

    store = new_store(redact=redact, count_tokens=count, max_turn_bytes=60)
    chat = store.conversation("c")
    assert (await chat.append("Ada")).tokens == 6
    assert counted == ["<name>"]
    with pytest.raises(LimitError, match="max_turn_bytes"):
        await chat.append("Ada" * 8)
    assert texts(await chat.read()) == ["<name>"]


async def test_a_summary(chat: AsyncConversation, server: Server) -> None:
    for number in range(6):
        await chat.append(f"q{number}")
    told = Echo()

    def model(prompt: str) -> str:
        return told(prompt) + " as Ada says"

    summary = await chat.summarize(echoing(model, Window(turns=2), when="manual"))
    assert summary.endswith("as <name> says")
    context = echoing(model, Window(turns=2))
    async with chat.turn("q", context=context) as turn:
        assert "as <name> says" in turn.messages[0]["content"]
        turn.reply("a")
    assert leaks(server, chat) == []


async def test_names_that_are_kept_of_a_turn(chat: AsyncConversation, server: Server) -> None:
    """They are drawn from what was said before it was changed."""
    context = Context(entities=Entities())
    async with chat.turn("Ada Lovelace met Charles Babbage.", context=context) as turn:
        turn.reply("Ada did.")
    (stored,) = await chat.turns()
    assert "Charles Babbage" in stored.meta["entities"]
    assert leaks(server, chat) == []


# What it gives back


@pytest.mark.parametrize(
    "given, error",
    [
        (None, TypeError),
        ("text", TypeError),
        ({"role": "user", "content": "x"}, TypeError),
        (["text"], TypeError),
        ([], ValueError),
        ([{"role": "user", "content": "x"}] * 3, ValueError),
        ([{"role": "user", "content": float("nan")}] * 2, ValueError),
        ([{"role": "user", "content": object()}] * 2, (TypeError, ValueError)),
        ([{"content": "no role"}] * 2, (TypeError, ValueError)),
    ],
)
@pytest.mark.one_setup
async def test_what_cannot_be_stored_is_an_error_and_nothing_is_written(
    new_store: NewStore, given: Any, error: Any
) -> None:
    chat = new_store(redact=lambda _: given).conversation("c")
    with pytest.raises(error, match="redact"):
        await chat.append(["one", "two"])
    with pytest.raises(SaveError, match="redact") as caught:
        async with chat.turn("q") as turn:
            turn.reply("the answer")
    assert caught.value.reply == "the answer"
    assert isinstance(caught.value.__cause__, error)
    assert await chat.read() == []


@pytest.mark.one_setup
async def test_what_it_raises(new_store: NewStore) -> None:
    class Down(Exception):  # noqa: N818 - somebody else's
        pass

    is_down = [True]

    def fails(messages: Messages) -> Messages:
        if is_down:
            raise Down
        return masked(messages)

    chat = new_store(redact=fails).conversation("c")
    with pytest.raises(Down):
        await chat.append("Ada")
    with pytest.raises(SaveError) as caught:
        async with chat.turn("Ada?") as turn:
            turn.reply("Ada!")
    assert isinstance(caught.value.__cause__, Down)
    assert await chat.read() == []
    is_down.clear()
    await turn.save()
    assert texts(await chat.read()) == ["<name>?", "<name>!"]


@pytest.mark.one_setup
async def test_a_summary_that_it_fails_on_is_not_stored(
    new_store: NewStore, server: Server
) -> None:
    def fails(messages: Messages) -> Messages:
        if "summary of" in str(messages):
            raise ConnectionError
        return messages

    chat = new_store(redact=fails).conversation("c")
    for number in range(6):
        await chat.append(f"q{number}")
    context = echoing(lambda _: "summary of Ada", Window(turns=2))
    async with chat.turn("q", context=context) as turn:
        turn.reply("a")
    assert context.counts["summary"] == 1
    assert not server.raw.exists(chat.key.replace(":turns", ":summary"))
    assert not server.raw.exists(chat.key.replace(":turns", ":lease"))
    with pytest.raises(ConnectionError):
        await chat.summarize(context)


@pytest.mark.one_setup
async def test_it_is_asked_for_what_is_new_alone(new_store: NewStore) -> None:
    asked: list[int] = []

    def counts(messages: Messages) -> Messages:
        asked.append(len(messages))
        return messages

    chat = new_store(redact=counts).conversation("c")
    await chat.append(["one", "two"])
    await chat.append([])
    await chat.read()
    await chat.fork("d")
    async with chat.turn([{"role": "system", "content": "s"}, "q"]) as turn:
        turn.reply("a")
    assert asked == [2, 2]


@pytest.mark.parametrize("redact", [7, "text", [masked]])
@pytest.mark.parametrize("kind", [Store, AsyncStore])
def test_what_is_no_function(kind: Any, redact: Any) -> None:
    class Client:
        def execute_command(self) -> None: ...

    with pytest.raises(TypeError, match="redact is a function"):
        kind(Client(), name="app", redact=redact)


def test_a_sync_store_takes_no_async_function() -> None:
    class Client:
        def execute_command(self) -> None: ...

    client: Any = Client()
    with pytest.raises(TypeError, match="redact is async, and this store is not"):
        Store(client, name="app", redact=amasked)
    chat = Store(client, name="app", redact=lambda messages: amasked(messages)).conversation("c")  # noqa: PLW0108 - not seen to be async
    with pytest.raises(TypeError, match="is async, and this store is not"):
        chat.append("Ada")
