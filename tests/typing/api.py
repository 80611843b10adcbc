"""The types of the public API, as mypy and pyright see them in a user's code; never run.

`make check` checks this file: an argument that stops being accepted, or a result that changes
its type, is an error here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, assert_type

import redis
import redis.asyncio
from anthropic import Anthropic
from google.genai import Client as GoogleClient
from google.genai.client import AsyncClient as AsyncGoogleClient
from google.genai.types import GenerateContentResponse
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionMessage,
    ChatCompletionMessageParam,
    ChatCompletionUserMessageParam,
)
from openai.types.responses import Response

from turnstore import (
    Appended,
    AsyncConversation,
    AsyncPendingTurn,
    AsyncStore,
    ConflictError,
    Conversation,
    History,
    Input,
    Lease,
    LeaseError,
    LeaseLostError,
    LimitError,
    Message,
    PendingTurn,
    SaveError,
    ScriptError,
    Stat,
    Store,
    Turn,
    TurnConflictError,
    TurnPage,
    TurnstoreError,
    UnavailableError,
    Window,
    remember,
)
from turnstore.context import Recalled
from turnstore.facts import AsyncFacts, Extracted, Extraction, Facts


def stores(client: redis.Redis, cluster: redis.RedisCluster) -> None:
    store = Store(
        client,
        name="app",
        prefix="p",
        secret=b"0123456789abcdef",
        max_messages=None,
        ttl=timedelta(hours=1),
        max_turn_messages=10,
        max_turn_bytes=None,
        count_tokens=lambda message: len(message["content"]),
    )
    assert_type(store, Store)
    Store(cluster, name="app", ttl=None)
    assert_type(Store.from_url("redis://localhost", name="app", cluster=True, ttl=None), Store)
    with store as same:
        assert_type(same, Store)
    assert_type(store.conversation("c"), Conversation)
    assert_type(store.close(), None)


async def async_stores(
    client: redis.asyncio.Redis, cluster: redis.asyncio.RedisCluster
) -> AsyncConversation:
    store = AsyncStore(client, name="app")
    AsyncStore(cluster, name="app")
    assert_type(AsyncStore.from_url("redis://localhost", name="app"), AsyncStore)
    async with store as same:
        assert_type(same, AsyncStore)
    await store.close()
    return store.conversation("c")


def what_may_be_appended(  # noqa: PLR0913, PLR0917 - each is one kind of value
    chat: Conversation,
    completion: ChatCompletion,
    message: ChatCompletionMessage,
    typed: ChatCompletionUserMessageParam,
    union: list[ChatCompletionMessageParam],
    response: Response,
    mapping: Mapping[str, Any],
    generator: Iterator[str],
) -> None:
    chat.append("text")
    chat.append({"role": "user", "content": "text"})
    chat.append([{"role": "user", "content": [{"type": "text", "text": "a"}]}])
    chat.append(["text", {"role": "user", "content": "text"}, message])
    chat.append(("text",))
    chat.append(message)
    chat.append(completion.choices[0].message)
    chat.append(typed)
    chat.append(union)
    chat.append(mapping)
    chat.append(generator)
    chat.append(response.output, format="openai.responses")
    given: Input = "text"
    chat.append(given, turn_id="t", expected_revision="0", continues=True, meta={"a": 1})


def what_is_answered(chat: Conversation) -> None:
    assert_type(chat.key, str)
    appended = chat.append("a")
    assert_type(appended, Appended)
    assert_type(appended.revision, str)
    assert_type(appended.duplicate, bool)
    assert_type(appended.dropped, int)
    history = chat.read(Window(turns=3, messages=5))
    assert_type(history, History)
    assert_type(history[0], dict[str, Any])
    assert_type(history.has_older, bool)
    assert_type(history.turns, list[Turn])
    plain: list[dict[str, Any]] = history
    messages: list[Message] = plain
    del messages
    page = chat.turns(10, before=3)
    assert_type(page, TurnPage)
    assert_type(page.cursor, int | None)
    turn = page[0]
    assert_type(turn, Turn)
    assert_type(turn.time, datetime)
    assert_type(turn.meta, dict[str, Any])
    assert_type(chat.trim(5), int)
    assert_type(chat.trim(turns=5), int)
    assert_type(chat.expire(None), bool)
    assert_type(chat.clear(), bool)
    assert_type(chat.rewind(2, expected_revision="1-a"), list[Turn])
    assert_type(chat.fork("d", upto=3), Conversation)
    stat = chat.stat()
    assert_type(stat, Stat)
    assert_type(stat.bytes, int | None)
    assert_type(stat.ttl, timedelta | None)
    assert_type(stat.first_time, datetime | None)


async def what_is_awaited(chat: AsyncConversation) -> None:
    assert_type(await chat.append("a"), Appended)
    assert_type(await chat.read(), History)
    assert_type(await chat.turns(), TurnPage)
    assert_type(await chat.trim(5), int)
    assert_type(await chat.expire(timedelta(1)), bool)
    assert_type(await chat.clear(), bool)
    assert_type(await chat.rewind(), list[Turn])
    assert_type(await chat.fork("d"), AsyncConversation)
    assert_type(await chat.stat(), Stat)
    async with chat.turn("q") as turn:
        assert_type(turn, AsyncPendingTurn)
        turn.reply("a")
        assert_type(await turn.save(), Appended | None)


def a_turn(chat: Conversation, completion: ChatCompletion, client: OpenAI) -> None:
    policy: Literal["append", "reject"] = "reject"
    with chat.turn("q", window=Window(), on_conflict=policy, on_load_error="continue") as turn:
        assert_type(turn, PendingTurn)
        assert_type(turn.messages, list[dict[str, Any]])
        assert_type(turn.new, list[dict[str, Any]])
        assert_type(turn.history, History)
        assert_type(turn.recalled, tuple[Recalled, ...])
        assert_type(turn.revision, str)
        assert_type(turn.turn_id, str)
        assert_type(turn.load_error, TurnstoreError | None)
        turn.reply(completion)
        turn.reply(completion.choices[0].message)
        turn.reply("a", answer=completion)
        turn.meta["model"] = completion.model
        assert_type(turn.fence, int | None)
        assert_type(turn.replaced, list[Turn])
    with chat.turn("q", replaces=chat.turns()[-1]) as anew:
        anew.reply("a")
    assert anew.saved
    assert_type(anew.saved.replaced_ids, tuple[str, ...])
    assert_type(chat.wrap(client, replaces="id"), OpenAI)
    lease = Lease(ttl=timedelta(seconds=5), wait=timedelta(0), waiters=0)
    chat.turn("q", on_conflict="serialize", lease=lease)
    chat.wrap(client, on_conflict="serialize", lease=lease)
    assert_type(turn.saved, Appended | None)
    assert_type(chat.wrap(client), OpenAI)


def an_async_client_keeps_its_type(chat: AsyncConversation, client: AsyncOpenAI) -> None:
    assert_type(chat.wrap(client, window=Window(turns=5)), AsyncOpenAI)


def another_sdk_keeps_its_type(chat: Conversation, client: Anthropic, google: GoogleClient) -> None:
    assert_type(chat.wrap(client), Anthropic)
    remembering = chat.wrap(google)
    assert_type(remembering, GoogleClient)
    answer = remembering.models.generate_content(model="m", contents="Hi")
    assert_type(answer, GenerateContentResponse)


async def the_async_half_keeps_its_type(
    chat: AsyncConversation, google: GoogleClient, aio: AsyncGoogleClient
) -> None:
    assert_type(chat.wrap(google), GoogleClient)
    remembering = chat.wrap(aio)
    assert_type(remembering, AsyncGoogleClient)
    chunks = await remembering.models.generate_content_stream(model="m", contents="Hi")
    assert_type(chunks, AsyncIterator[GenerateContentResponse])


def functions_keep_their_types(chat: Conversation, other: AsyncConversation) -> None:
    @remember
    def ask(messages: list[Message], model: str, *, loud: bool = False) -> str:
        return f"{len(messages)}{model}{loud}"

    @remember
    async def async_ask(messages: list[Message]) -> bytes:
        return bytes(len(messages))

    @remember
    async def words(messages: list[Message]) -> AsyncIterator[str]:
        yield str(len(messages))

    @remember(on_conflict="reject")
    def pieces(messages: list[Message]) -> Iterator[str]:
        yield str(len(messages))

    assert_type(ask(chat, "Hi", "m", loud=True), str)
    said = async_ask(other, [{"role": "user", "content": "Hi"}])
    _ = assert_type(said, Coroutine[Any, Any, bytes])
    assert_type(words(other, "Hi"), AsyncIterator[str])
    assert_type(pieces(chat, "Hi"), Iterator[str])
    ask(chat, "Hi", 3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ask(other, "Hi", "m")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ask(chat, "Hi")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def embedders(store: Store, other: AsyncStore, client: OpenAI, later: AsyncOpenAI) -> None:
    facts = Facts(store, embed=client, dimensions=1536, embedder="text-embedding-3-small")
    Facts(store, embed=lambda texts: [[1.0] for _ in texts], dimensions=1, embedder="one:1")
    AsyncFacts(other, embed=later, dimensions=1536, embedder="text-embedding-3-small")
    assert_type(Extraction(facts, client, model="gpt-x").run(), Extracted)
    assert_type(Extraction(facts, client, model="gpt-x").run("ada"), Extracted)
    Facts(store, embed=7, dimensions=1, embedder="seven")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Extraction(facts, client).run(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def errors(do: Callable[[], None]) -> None:
    try:
        do()
    except TurnConflictError as error:
        assert_type(error.expected, str | None)
    except LeaseLostError as error:
        lease_error: LeaseError = error
        save_error: SaveError = error
        del lease_error, save_error
    except SaveError as error:
        error.turn.save()
    except ConflictError as error:
        assert_type(error.actual, str | None)
    except UnavailableError as error:
        assert_type(error.outcome_unknown, bool)
    except ScriptError as error:
        assert_type(error.line, int | None)
    except LimitError as error:
        value_error: ValueError = error
        del value_error
    except TurnstoreError:
        pass


def what_is_refused(chat: Conversation, client: redis.asyncio.Redis) -> None:
    """Each line is an error, and each is expected: an unneeded `ignore` is an error, too."""
    chat.append(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    chat.append("a", "t")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    chat.read(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    chat.expire(60)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    chat.turn("q", on_conflict="rejct")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Window(turns="3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Store(client, name="app")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Window().turns = 3  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
