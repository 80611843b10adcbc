"""One answer, as the events that a browser is sent.

    recalled  the model answers; what it was told of earlier chats, empty if nothing
    text      a piece of its answer
    again     a stored answer, whole: this message was answered before
    saving    the model has answered, and the save is being tried again
    done      the turn is stored
    busy, memory, model, unsaved, erased, refused     why it is not, in words for the user

Exactly one `done` or reason comes last. Where a reason comes first, and alone, it is still time for
a status that says so. A browser that got neither does not know what became of its message, so it
sends it again, with the same key.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from typing import cast

from openai import AsyncOpenAI, AsyncStream, OpenAIError
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam

from turnstore import AsyncConversation, Lease, LeaseError, SaveError, TurnstoreError
from turnstore.context import Context
from turnstore.errors import AlreadySavedError, ErasedError, LeaseLostError, TurnIdReusedError
from turnstore.turn import AsyncPendingTurn

MODEL = os.environ.get("EXAMPLE_MODEL", "gpt-5")
INSTRUCTIONS = "You are a friendly assistant. Be brief."  # sent with each call, and never stored

# A conversation takes one message at a time, in whatever tab and worker. One that comes meanwhile
# waits; one whose worker died is waited for as long as `ttl`.
# Nothing is sent while it waits, so that is shorter than the minute for which proxies wait.
ONE_BY_ONE = Lease(ttl=timedelta(seconds=10), wait=timedelta(seconds=45), waiters=4)
SAVE_AGAIN = (0.5, 1, 2)  # seconds of pause before each further attempt
LEFT_OUT = {"content_filter"}  # finish reasons of answers that are not stored

log = logging.getLogger("uvicorn.error")

Event = tuple[str, str]
ERASED = "erased", "This chat was deleted meanwhile, so nothing of this is stored."
UNSAVED = "unsaved", "This answer could not be stored: the model will not remember it."


async def answer(
    chat: AsyncConversation, openai: AsyncOpenAI, context: Context, text: str, key: str
) -> AsyncGenerator[Event]:
    """Answer a message once, however often it is sent.

    The key is the id of the turn. The lease comes before the history is read: so a message that
    is sent again while its first attempt is still being answered waits for it, and finds the
    answer. Where somebody leaves, this generator is closed, which ends the model's stream; nothing
    is saved then.
    """
    new = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": text}]
    turn = chat.turn(
        new,
        turn_id=key,
        context=context,
        on_conflict="serialize",
        lease=ONE_BY_ONE,
        on_duplicate="raise",
    )
    try:
        async with turn, await _asked(openai, turn) as stream:
            yield "recalled", "\n\n".join(found.text for found in turn.recalled)
            async with aclosing(_pieces(turn, stream)) as pieces:
                async for piece in pieces:
                    yield "text", piece
    except AlreadySavedError as error:  # it was answered before: the model is not asked again
        yield "again", error.reply[-1]["content"]
    except TurnIdReusedError:
        yield "refused", "This key belongs to another message."
        return
    except ErasedError as error:  # the chat or its user; what began before never comes back
        log.warning("%s", error)
        yield UNSAVED if error.reason == "lost" else ERASED  # lost: nobody has deleted it
        return
    except SaveError as error:  # the answer is complete, and stands in the browser
        log.warning("%s", error)
        yield "saving", ""
        if not await _save_again(turn):
            yield UNSAVED
            return
    except (TurnstoreError, OpenAIError) as error:
        log.warning("%r", error)
        yield _told(error)
        return
    yield "done", ""


async def _asked(openai: AsyncOpenAI, turn: AsyncPendingTurn) -> AsyncStream[ChatCompletionChunk]:
    """Ask the model; what it answers is still to come."""
    messages = cast("list[ChatCompletionMessageParam]", turn.messages)
    return await openai.chat.completions.create(model=MODEL, messages=messages, stream=True)


async def _pieces(
    turn: AsyncPendingTurn, stream: AsyncStream[ChatCompletionChunk]
) -> AsyncGenerator[str]:
    """Give the pieces of the model's answer, and to the turn the whole, if it is one."""
    pieces, finish = [], None
    async for chunk in turn.follow(stream):
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            if choice.delta.content:
                pieces.append(choice.delta.content)
                yield choice.delta.content
    # A stream can just end, and a refusal has no text.
    if finish is None or finish in LEFT_OUT or not pieces:
        raise OpenAIError(f"there is no whole answer; the finish reason is {finish}")
    turn.reply("".join(pieces))


async def _save_again(turn: AsyncPendingTurn) -> bool:
    """Try for some seconds; the turn keeps its id, so that it cannot be stored twice."""
    for pause in SAVE_AGAIN:
        await asyncio.sleep(pause)
        try:
            await turn.save()
        except (ErasedError, LeaseLostError):  # erased, or another message was answered meanwhile
            return False
        except SaveError as error:
            log.warning("%s", error)
        else:
            return True
    return False


def _told(error: Exception) -> Event:
    """Say to the user what happened; the log has the details."""
    if isinstance(error, LeaseError):
        return "busy", "Other messages of this conversation are still being answered."
    if isinstance(error, TurnstoreError):
        return "memory", "The memory failed, so the model was not asked."
    return "model", "The model gave no complete answer."
